"""One corpus written in every layout gives the same clips; files that fit two layouts are never guessed."""

import hashlib
import os
import shutil
from pathlib import Path

import pytest
from cache_files import index_path
from click.testing import CliRunner

from xtts.precompute.build.build_cache import build_cache
from xtts.precompute.check.verify import verify_cache
from xtts.precompute.check.verify_command import VerifyRequest, find_problems
from xtts.precompute.cli import build, main
from xtts.precompute.corpus.corpus_entries import parse_data
from xtts.precompute.corpus.listing import LAYOUTS, read_corpus
from xtts.precompute.workers.progress import NullProgress
from xtts.shared.cache.clip_index import Rejected, read_index
from xtts.shared.config_files import load_config
from xtts.shared.errors import LockstepError

WRITTEN = sorted({*LAYOUTS, "ljspeech_nested"})
WITHOUT_SPEAKERS = {"f5", "folder"}


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def copy(tones: Path, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(tones / "wavs" / "tone-0000.wav", path)


def test_help_names_every_layout():
    text = next(option.help for option in build.params if option.name == "layout")
    assert all(name in text for name in LAYOUTS)


@pytest.mark.parametrize("name", WRITTEN)
def test_one_corpus_in_every_layout_gives_the_same_clips(written, clips, name):
    root = written(name)
    corpus = read_corpus(root)
    expected = {(clip, "" if name in WITHOUT_SPEAKERS else who, text) for clip, who, text in clips}
    assert {(clip.id, clip.speaker, clip.text) for clip in corpus.clips} == expected
    assert len(corpus.clips) == len(clips)
    assert all((root / clip.source).is_file() and not Path(clip.source).is_absolute() for clip in corpus.clips)
    assert not any(clip.duplicate for clip in corpus.clips)
    assert read_corpus(root, layout=name.partition("_")[0]) == corpus
    assert read_corpus(root, limit=3).clips == corpus.clips[:3]
    assert {clip.language for clip in corpus.clips} == {"en" if name == "common-voice" else ""}


def shard_bytes(cache: Path) -> dict[str, str]:
    return {
        path.relative_to(cache).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(cache.rglob("*.tfrecord"))
    }


def test_layouts_of_the_same_samples_give_the_same_shards(written, tmp_path):
    config = load_config("tiny", flags={"shapes.buckets": 2, "split.validation_fraction": 0.1})
    shards = {}
    for name in sorted({*WRITTEN} - WITHOUT_SPEAKERS - {"common-voice"}):  # whose mp3 has other samples
        build_cache(written(name), tmp_path / f"cache-{name}", config, workers=0, progress=NullProgress())
        assert verify_cache(tmp_path / f"cache-{name}", threads=1) == []
        shards[name] = shard_bytes(tmp_path / f"cache-{name}")
    assert shards["ljspeech"]
    assert all(found == shards["ljspeech"] for found in shards.values())


@pytest.fixture
def ambiguous(written) -> Path:
    """`id|speaker|text` without suffixes."""
    root = written("piper")
    put(root / "metadata.csv", (root / "metadata.csv").read_text().replace(".wav|", "|"))
    return root


def test_three_columns_that_fit_two_layouts_show_both_readings(ambiguous, clips):
    root = ambiguous
    clip, who, text = clips[0]
    with pytest.raises(LockstepError) as caught:
        read_corpus(root)
    message = str(caught.value)
    assert message.startswith(f"{root / 'metadata.csv'}:1: three columns that can be read in two ways: '{clip}|{who}|")
    assert f"text 'ann' and the same in words '{text[:40]}' (ljspeech), or speaker 'ann' and text" in message
    assert "--layout ljspeech or --layout piper, or --columns file=0,speaker=1,text=2" in message
    as_piper = read_corpus(root, layout="piper").clips
    assert [(clip.id, clip.speaker, clip.text) for clip in as_piper] == clips
    assert read_corpus(root, columns="id=0,speaker=1,text=2").clips == as_piper
    as_ljspeech = read_corpus(root, layout="ljspeech").clips
    assert [(clip.speaker, clip.text) for clip in as_ljspeech] == [("", text) for _, _, text in clips]
    put(root / "other" / "corpus.csv", (root / "metadata.csv").read_text())
    with pytest.raises(LockstepError, match=r"corpus\.csv:1: three columns"):
        read_corpus(root / "other" / "corpus.csv")


def test_a_cache_of_an_ambiguous_corpus_is_built_checked_and_repaired_with_the_same_flag(ambiguous, tmp_path):
    root, cache = ambiguous, tmp_path / "cache"
    entries = parse_data(root, layout="piper")
    build_cache(entries, cache, load_config("tiny"), workers=0, progress=NullProgress())
    request = {"cache": cache, "against": root, "deep": None, "workers": 1}
    assert find_problems(VerifyRequest(**request, repair=False, layout="piper"), NullProgress()) == []
    as_columns = VerifyRequest(**request, repair=False, columns="id=0,speaker=1,text=2")
    assert find_problems(as_columns, NullProgress()) == []
    for repair in (False, True):
        if repair:
            next(cache.rglob("*.tfrecord")).write_bytes(b"broken")
        with pytest.raises(LockstepError, match="three columns that can be read in two ways"):
            find_problems(VerifyRequest(**request, repair=repair), NullProgress())
    assert find_problems(VerifyRequest(**request, repair=True, layout="piper"), NullProgress()) == []


@pytest.mark.parametrize(
    ("text", "texts"),
    [
        ("a|In the year 1500 it began.|In the year fifteen hundred it began.\nb|Yes|Yes!\n",
         ["In the year fifteen hundred it began.", "Yes!"]),
        ("a|stop|Stop.\nb|go|go\nc|5|five\n", ["Stop.", "go", "five"]),
        ("a|卡尔普。|ka3 er3 pu3\nb|你好?|ni3 hao3\n", ["ka3 er3 pu3", "ni3 hao3"]),
        ("a|ann||\nb|bob|\n", ["ann", "bob"]),
        ("a|ann|ann|ann\nb|no 5|no five|ann\nc|x|y|ann\n", ["ann", "no five", "y"]),
    ],
)  # fmt: skip
def test_plain_ljspeech_needs_no_flag(tmp_path, text, texts):
    put(tmp_path / "metadata.csv", text)
    assert [clip.text for clip in read_corpus(tmp_path).clips] == texts


@pytest.mark.parametrize(
    "text",
    [
        "a|ann|Hello there.\nb|bob|And you?\n",
        "a.wav|ann|Hello there.\nb.wav|bob|And you?\n",  # every speaker once: a text, perhaps
        "a.wav|Hello there, you two.|ann\nb.wav|ann|Hi.\n",
        "a|ann|Hello there.\nb|A long sentence of words.|x\n",
    ],
)
def test_what_could_be_a_speaker_or_a_text_is_not_guessed(tmp_path, text):
    put(tmp_path / "metadata.csv", text)
    with pytest.raises(LockstepError, match=r"three columns that can be read in two ways: .*'ann'"):
        read_corpus(tmp_path)


def test_two_columns_with_and_without_suffix(tmp_path, tones):
    copy(tones, tmp_path / "a.wav")
    put(tmp_path / "metadata.csv", "a.wav|one\nb.wav|two\n")
    assert [(c.id, c.source, c.text) for c in read_corpus(tmp_path).clips] == [
        ("a", "a.wav", "one"), ("b", "wavs/b.wav", "two"),
    ]  # fmt: skip
    rows = build_rejected(tmp_path, tmp_path / "cache")
    assert rows == {"b": "missing audio"}


def build_rejected(data: Path, cache: Path, **options: str) -> dict[str, str]:
    """Id to reason of the clips that a build of this corpus rejects."""
    config = load_config("tiny", flags={"shapes.max_reject_fraction": 0.95})
    build_cache(data, cache, config, workers=0, progress=NullProgress(), **options)
    return {row.clip.id: row.rejection.reason for row in read_index(index_path(cache))
            if isinstance(row, Rejected)}  # fmt: skip


def test_two_layouts_in_one_folder(written, tmp_path):
    root = written("kaldi")
    shutil.copytree(written("common-voice"), root, dirs_exist_ok=True)
    with pytest.raises(LockstepError, match="files of 2 layouts: common-voice and kaldi; say which: --layout common-v"):
        read_corpus(root)
    assert all(clip.source.endswith(".flac") for clip in read_corpus(root, layout="kaldi").clips)
    assert all(clip.source.endswith(".mp3") for clip in read_corpus(root, layout="common-voice").clips)


def test_a_list_itself_may_be_given(written):
    for name, file in (("common-voice", "validated.tsv"), ("piper", "metadata.csv"), ("ljspeech", "metadata.csv"),
                       ("nemo", "manifest.jsonl")):  # fmt: skip
        root = written(name)
        assert read_corpus(root / file) == read_corpus(root)


def test_an_odd_folder_names_what_could_lie_there(tmp_path):
    with pytest.raises(LockstepError, match=r"metadata\.csv: no such file, expected lines of clips, or one of .*vctk"):
        read_corpus(tmp_path)
    with pytest.raises(LockstepError, match=r"--layout: 'vtck', expected one of ljspeech, piper"):
        read_corpus(tmp_path, layout="vtck")
    with pytest.raises(LockstepError, match=r"--layout: 'piper' and --columns, expected one of them"):
        read_corpus(tmp_path, layout="piper", columns="id=0,text=1")


def test_the_same_file_name_in_two_folders_gives_ids_of_paths(tones, tmp_path):
    for who in ("p1", "p2"):
        copy(tones, tmp_path / "lj" / "wavs" / who / "a.wav")
        copy(tones, tmp_path / "plain" / who / "a.wav")
        put(tmp_path / "plain" / who / "a.txt", "words")
    copy(tones, tmp_path / "plain" / "p2" / "b.wav")
    put(tmp_path / "plain" / "p2" / "b.txt", "words")
    assert [clip.id for clip in read_corpus(tmp_path / "plain").clips] == ["p1_a", "p2_a", "b"]
    put(tmp_path / "lj" / "metadata.csv", "p1/a|one\np2/a.wav|two\n")
    assert [(c.id, c.source) for c in read_corpus(tmp_path / "lj").clips] == [
        ("p1_a", "wavs/p1/a.wav"), ("p2_a", "wavs/p2/a.wav"),
    ]  # fmt: skip
    put(tmp_path / "lj" / "metadata.csv", "a|one\n")
    with pytest.raises(LockstepError, match=r"metadata\.csv:1: 2 files called 'a', the first are p1/a\.wav and p2/a"):
        read_corpus(tmp_path / "lj")


def test_kaldis_utterances_as_speakers_are_no_speakers(written):
    root = written("kaldi")
    put(root / "utt2spk", "\n".join(f"{clip.id} {clip.id}" for clip in read_corpus(root).clips))
    assert {clip.speaker for clip in read_corpus(root).clips} == {""}
    os.remove(root / "utt2spk")
    assert {clip.speaker for clip in read_corpus(root).clips} == {""}


def test_the_command_takes_layout_and_columns(ambiguous, tmp_path):
    options = ["build", "--data", str(ambiguous), "--cache", str(tmp_path / "cache"), "--workers", "1"]
    refused = CliRunner().invoke(main, options)
    assert refused.exit_code == 2
    assert "three columns that can be read in two ways" in refused.output
    built = CliRunner().invoke(main, [*options, "--layout", "piper"])
    assert "8 clips kept" in built.output, built.output
    again = CliRunner().invoke(main, [*options, "--columns", "file=0,speaker=1,text=2"])
    assert "nothing to do" in again.output
    verify = ["verify", "--cache", str(tmp_path / "cache"), "--against", str(ambiguous), "--workers", "1"]
    assert CliRunner().invoke(main, verify).exit_code == 2
    sound = CliRunner().invoke(main, [*verify, "--layout", "piper"])
    assert (sound.exit_code, sound.output.strip().endswith(": sound")) == (0, True), sound.output
