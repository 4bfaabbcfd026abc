"""What a second build of a changed corpus does, and does not do."""

import os
import shutil
from pathlib import Path

import pytest
import soundfile
from builds import Listener, first_shard, flip, rows_of, shards, spoil, update

from xtts.precompute.check.verify import check_cache
from xtts.precompute.pipeline.build_cache import explain_build
from xtts.precompute.pipeline.build_request import make_request
from xtts.precompute.workers.worker_pool import ThisProcess
from xtts.shared.cache.cache_spec import load_spec, without_digest
from xtts.shared.config import Config
from xtts.shared.config_files import load_config
from xtts.shared.errors import LockstepError

FLAGS = {"shapes.buckets": 3, "split.validation_fraction": 0.2, "shards.shard_mb": 1}


@pytest.fixture(scope="module")
def built(tone_corpus, tmp_path_factory) -> Path:
    """A folder with `corpus` and its finished `cache` of several shards."""
    folder = tmp_path_factory.mktemp("incremental")
    tone_corpus(folder / "corpus", 150, seconds=(0.6, 1.5), seed=5)
    update(folder, config())
    assert len(shards(folder / "cache")) >= 6
    return folder


@pytest.fixture
def workspace(built, tmp_path) -> Path:
    """A copy that a test may change."""
    return Path(shutil.copytree(built, tmp_path / "workspace"))


def config(**flags: object) -> Config:
    return load_config("tiny", flags={**FLAGS, **{key.replace("__", "."): value for key, value in flags.items()}})


def changed_shards(before: dict[str, bytes], cache: Path) -> set[str]:
    """Their names without digests: one that changed is two files."""
    return {without_digest(name) for name in before.keys() ^ shards(cache).keys()}


def replace_line(corpus: Path, position: int, line: str | None) -> None:
    lines = (corpus / "metadata.csv").read_text().splitlines()
    lines[position : position + 1] = [] if line is None else [line]
    (corpus / "metadata.csv").write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("decoded", [1, 0], ids=["audio", "transcript"])
def test_one_changed_clip_rewrites_its_shard_alone(workspace, decoded):
    before = shards(workspace / "cache")
    if decoded:
        path = workspace / "corpus" / "wavs" / "tone-0007.wav"
        samples, rate = soundfile.read(path)
        soundfile.write(path, samples[::-1], rate)
    else:
        replace_line(workspace / "corpus", 7, "tone-0007|these words")  # held out, as the text before
    report, progress = update(workspace, config())
    assert len(changed_shards(before, workspace / "cache")) == report.written_shards == 1
    assert any(f" {decoded} of them from audio and" in line for line in progress.lines)
    assert check_cache(workspace / "cache", threads=1) == []
    fresh, _ = update(workspace, config(), "fresh")
    assert shards(workspace / "cache") == shards(workspace / "fresh")
    assert fresh.spec == report.spec


def test_added_and_removed_clips_rewrite_their_shards_alone(workspace):
    before = shards(workspace / "cache")
    replace_line(workspace / "corpus", 30, None)
    report, progress = update(workspace, config())
    assert len(changed_shards(before, workspace / "cache")) == report.written_shards == 1
    assert "1 clip removed (tone-0030)" in progress.lines
    before = shards(workspace / "cache")
    shutil.copy(workspace / "corpus" / "wavs" / "tone-0030.wav", workspace / "corpus" / "wavs" / "new.wav")
    replace_line(workspace / "corpus", 3, "tone-0003|some words\nnew|a new clip")
    report, progress = update(workspace, config())
    assert "1 clip added (new)" in progress.lines
    assert len(changed_shards(before, workspace / "cache")) == report.written_shards <= 2
    assert check_cache(workspace / "cache", threads=1) == []


def test_touched_files_are_known_by_their_digest(workspace):
    before, identity = shards(workspace / "cache"), load_spec(workspace / "cache").identity
    for path in (workspace / "corpus" / "wavs").iterdir():
        os.utime(path, ns=(10**18, 10**18))
    report, _ = update(workspace, config())
    assert report.written_shards == 0
    assert report.spec.identity == identity  # runs continue with it
    assert shards(workspace / "cache") == before
    assert {row.source_mtime_ns for row in rows_of(workspace / "cache").values()} == {10**18}
    assert update(workspace, config())[1].stages == {"scan": 150, "features": 0}


@pytest.mark.parametrize(("flags", "line"), [
    ({"text__add_blank": False}, "text.add_blank: True -> False: all texts are tokenised again"),
    ({"shapes__buckets": 2}, "shapes.buckets: 3 -> 2: the mels come from the cache and are padded again"),
    ({"split__seed": 1}, "split.seed: 0 -> 1: the clips are divided again"),
])
def test_other_settings_reuse_the_stored_mels(workspace, flags, line):
    wavs = workspace / "corpus" / "wavs"
    update(workspace, config(**flags), "fresh")
    for path in wavs.iterdir():
        spoil(path)
    report, progress = update(workspace, config(**flags))
    assert any(said.startswith(line) for said in progress.lines)
    assert report.spec.statistics.clips == 150
    assert shards(workspace / "cache") == shards(workspace / "fresh")
    assert (workspace / "cache" / "cache.json").read_bytes() == (workspace / "fresh" / "cache.json").read_bytes()


def test_another_profile_computes_all_mels_again(workspace):
    report, progress = update(workspace, config(audio__profile="tacotron2"))
    assert "audio.profile: hifigan -> tacotron2: all mels are computed again" in progress.lines
    assert progress.stages == {"scan": 150, "features": 150}
    assert report.kept_shards == 0
    update(workspace, config(audio__profile="tacotron2"), "fresh")
    assert shards(workspace / "cache") == shards(workspace / "fresh")


def test_a_broken_stored_mel_is_not_used(workspace):
    flip(first_shard(workspace / "cache"), 3000)
    with pytest.raises(LockstepError, match=r"shard-00000.* record 0 \(tone-.*cannot be read: data checksum"):
        update(workspace, config(text__add_blank=False))
    report, _ = update(workspace, config(text__add_blank=False), fresh=True)
    assert report.kept_shards == 0
    assert check_cache(workspace / "cache", threads=1) == []


def test_dry_run_explains_and_writes_nothing(workspace):
    before = {p: p.stat().st_mtime_ns for p in workspace.rglob("*")}
    replace_line(workspace / "corpus", 4, "tone-0004|other words")
    before[workspace / "corpus" / "metadata.csv"] = (workspace / "corpus" / "metadata.csv").stat().st_mtime_ns
    progress = Listener()
    for cache in ("cache", "nowhere"):
        explain_build(make_request(workspace / "corpus", workspace / cache, config()), ThisProcess(), progress)
    assert progress.lines[-1].endswith("0 from stored mels), 0 kept")
    assert {p: p.stat().st_mtime_ns for p in workspace.rglob("*")} == before
