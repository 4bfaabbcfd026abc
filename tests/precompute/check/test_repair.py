"""verify --against, --deep and --repair."""

import hashlib
import os
import re
import shlex
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import soundfile
from builds import build, command, first_shard, flip, problems, sound, tree, write_files
from cache_files import index_bytes, index_path, replace_index, tokenizer_path

from xtts.shared.cache.clip_index import read_index
from xtts.shared.config_files import load_config
from xtts.shared.errors import LockstepError


def check(workspace: Path, **options: object) -> list[str]:
    """The findings of a verification against the corpus."""
    return list(map(str, problems(workspace / "cache", workspace / "corpus", **options)))


def halve(wav: Path) -> None:
    samples, rate = soundfile.read(wav)
    soundfile.write(wav, samples * 0.5, rate)


def test_changed_added_and_removed_clips_are_named(workspace):
    wavs, metadata = workspace / "corpus" / "wavs", workspace / "corpus" / "metadata.csv"
    halve(wavs / "tone-0003.wav")
    (wavs / "tone-0004.wav").unlink()
    lines = metadata.read_text().splitlines()
    lines[5] = "tone-0005|something else"
    del lines[6]
    metadata.write_text("\n".join([*lines, "newcomer|hello there"]) + "\n")
    findings = check(workspace)
    assert [line.split("; ")[0] for line in findings] == [
        "wavs/tone-0003.wav (tone-0003): audio changed, expected the audio of the cache",
        "wavs/tone-0004.wav (tone-0004): audio missing, expected the audio of the cache", findings[2].split("; ")[0],
        "wavs/newcomer.wav (newcomer): added to the corpus, expected a clip of the cache",
        "wavs/tone-0006.wav (tone-0006): in the cache, expected removed from the corpus",
    ]
    assert findings[2].startswith("wavs/tone-0005.wav (tone-0005): transcript changed, expected '")
    fix = f"run xtts-precompute build --cache {workspace / 'cache'} --data <its corpus> --config <its own>"
    assert all(line.endswith(fix) for line in findings)


def test_deep_compares_with_a_second_computation(workspace):
    for path in (workspace / "corpus" / "wavs").iterdir():
        os.utime(path, ns=(1, 1))
    assert check(workspace, deep=0) == []
    path = workspace / "corpus" / "wavs" / "tone-0003.wav"
    halve(path)
    forge_index(workspace / "cache", "tone-0003", path)
    (finding,) = check(workspace, deep=0)
    assert re.search(
        r"record \d+ \(tone-0003\): mel differs by 0\.[67]\d\d at frame .*, expected at most 0\.02", finding
    )
    assert finding.endswith(
        f"; run xtts-precompute build --fresh --cache {workspace / 'cache'} --data <its corpus> --config <its own>"
    )


def forge_index(cache: Path, clip_id: str, audio: Path) -> None:
    """Record that audio in the index as the source of the stored features."""
    stat, digest = audio.stat(), hashlib.sha256(audio.read_bytes()).hexdigest()
    news = {"audio_sha256": digest, "source_bytes": stat.st_size, "source_mtime_ns": stat.st_mtime_ns}
    rows = read_index(index_path(cache))
    replace_index(cache, index_bytes([replace(row, **news) if row.clip.id == clip_id else row for row in rows]))


BREAKAGES = {
    "flipped": lambda path: flip(path, path.stat().st_size // 3, bit=4),
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-9]), "emptied": lambda path: path.write_bytes(b""),
    "missing": Path.unlink,
}


@pytest.mark.parametrize("breakage", BREAKAGES)
def test_repair_makes_a_shard_again_and_nothing_else(workspace, breakage):
    cache, whole, path = workspace / "cache", tree(workspace / "cache"), first_shard(workspace / "cache")
    others = {p: p.stat().st_ino for p in cache.rglob("*.tfrecord") if p != path}
    BREAKAGES[breakage](path)
    assert check(workspace)
    assert check(workspace, repair=True) == []
    assert tree(cache) == whole
    assert not path.is_symlink()
    assert {p: p.stat().st_ino for p in others} == others


@pytest.mark.parametrize("files", [(index_path,), (tokenizer_path,), (index_path, first_shard)])
@pytest.mark.parametrize("breakage", ["flipped", "missing"])
def test_repair_makes_small_files_again_and_a_shard_with_them(workspace, files, breakage):
    whole = tree(workspace / "cache")
    for file in files:
        BREAKAGES[breakage](file(workspace / "cache"))
    assert check(workspace, repair=True) == []
    assert tree(workspace / "cache") == whole


def test_repair_refuses_a_corpus_that_changed(workspace):
    path = first_shard(workspace / "cache")
    path.unlink()
    halve(workspace / "corpus" / "wavs" / "tone-0003.wav")
    with pytest.raises(LockstepError, match=r"1 clip changed since .* such as wavs/tone-0003\.wav"):
        check(workspace, repair=True)
    assert not path.exists()


def test_repair_refuses_another_corpus_where_no_index_tells(workspace):
    index_path(workspace / "cache").unlink()
    first_shard(workspace / "cache").unlink()
    metadata = workspace / "corpus" / "metadata.csv"
    metadata.write_text(metadata.read_text().replace("tone-", "other-"))
    for path in (workspace / "corpus" / "wavs").iterdir():
        path.rename(path.with_name(path.name.replace("tone-", "other-")))
    with pytest.raises(LockstepError, match=r"no clip tone-\d+, which .* holds, expected the corpus that the"):
        check(workspace, repair=True)


def test_repair_as_a_command(workspace):
    cache = workspace / "cache"
    first_shard(cache).unlink()
    verify = partial(command, "verify", "--workers", 0)
    done = verify("--cache", cache, "--repair")
    assert done.exit_code == 2
    assert "error: --repair: needs the corpus, expected --repair --against DATA" in done.stderr
    finding = verify("--cache", cache).stdout.splitlines()[0]
    fix = finding.partition("; run xtts-precompute verify ")[2].replace("<its corpus>", str(workspace / "corpus"))
    done = verify(*shlex.split(fix), "--deep")
    assert done.exit_code == 0, done.stderr
    assert "missing, expected" in done.stderr
    assert "1 file repaired" in done.stderr
    assert done.stdout == f"{cache}: sound\n"


CONFIG = load_config("tiny", flags={"shapes.max_reject_fraction": 0.9, "data.filters.max_letters_per_second": 10.0})
FAST = b"too many words for one second"


def findings(data: Path, cache: Path) -> list[tuple[str, str]]:
    """Without places in archives."""
    return [(re.sub(r"/\d+\+\d+", "", finding.location), finding.found) for finding in problems(cache, data)]


def test_a_rejected_file_is_changed_when_its_size_is(tmp_path):
    data, cache = tmp_path / "data", tmp_path / "cache"
    write_files(data, {"a.wav": sound(), "a.txt": "words", "b.wav": sound(), "b.txt": FAST})
    build(data, cache, CONFIG)
    os.utime(data / "b.wav", (1, 1))
    assert findings(data, cache) == []
    (data / "b.wav").write_bytes(sound()[:-2])
    assert findings(data, cache) == [("b.wav (b)", "audio changed")]
    (data / "b.wav").unlink()
    assert findings(data, cache) == [("b.wav (b)", "audio missing")]
