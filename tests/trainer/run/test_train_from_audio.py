"""Runs straight from audio: the losses of the cache, and wavs that break in mid-run."""

import json
import re
import shutil

import numpy as np
import pytest
import soundfile
from cache_files import build_cache
from held_runs import train
from rich.console import Console

from xtts.shared.cache.cache_spec import load_spec
from xtts.shared.config_files import load_config
from xtts.shared.errors import LockstepError
from xtts.trainer.stored.checkpoint import list_checkpoints

SHAPE = {"shapes.buckets": 1, "shards.mel_dtype": "float32", "split.validation_fraction": 0.0}
ASSIGNED = ("shards.mel_dtype=float32", "split.validation_fraction=0", "training.checkpoint_every=1000")


def build(corpus, cache, *, index_only=True):
    config = load_config("tiny", flags=SHAPE)
    build_cache(corpus, cache, config, index_only=index_only)
    return cache


@pytest.fixture(scope="session")
def corpus(tmp_path_factory, tiny_corpus):
    """A copy whose wavs tests break and put back."""
    return shutil.copytree(tiny_corpus, tmp_path_factory.mktemp("broken") / "corpus")


@pytest.fixture(scope="session")
def indexed(tmp_path_factory, corpus):
    """Its cache without mels, one shape, nothing held out."""
    return build(corpus, tmp_path_factory.mktemp("indexed") / "features")


@pytest.fixture(scope="session")
def steps_from_audio(make_plan, compile_steps, indexed, tmp_path_factory):
    """The steps of every run on it are compiled."""
    compile_steps(make_plan(tmp_path_factory.mktemp("steps"), *ASSIGNED, cache=indexed))


def losses(folder):
    lines = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    return [line["loss"] for line in lines if line["split"] == "train"]


def run(make_plan, folder, cache, *assignments):
    assert train(make_plan(folder, *ASSIGNED, *assignments, cache=cache), Console(quiet=True))
    return np.array(losses(folder))


@pytest.fixture
def real_wavs(real_clips, tmp_path):
    """A corpus of the six clips of kathleen, as wavs."""
    folder = tmp_path / "kathleen"
    folder.mkdir()
    shutil.copy(real_clips / "kathleen" / "metadata.csv", folder)
    for clip in real_clips.glob("kathleen/*.flac"):
        soundfile.write(folder / f"{clip.stem}.wav", *soundfile.read(clip, dtype="int16"))
    return folder


@pytest.mark.long
def test_a_hundred_steps_on_real_clips_have_the_losses_of_the_cache(make_plan, real_wavs, tmp_path):
    # At a high rate AdamW's first steps make 1e-6 of difference between two FFTs into 1e-2 after twenty.
    more = ["training.steps=100", "training.steps_per_call=25", "training.learning_rate=5e-4"]
    caches = ((tmp_path / "cached", False), (tmp_path / "audio", True))
    cached, audio = (build(real_wavs, cache, index_only=kind) for cache, kind in caches)
    expected = run(make_plan, tmp_path / "a", cached, *more)
    assert len(expected) == 100
    losses_from_audio = run(make_plan, tmp_path / "b", audio, *more)
    np.testing.assert_allclose(losses_from_audio, expected, rtol=1e-3)
    assert not np.array_equal(losses_from_audio, expected), "float32 mels of two FFTs are not the same to the bit"


def damage(wav, how):
    samples, rate = soundfile.read(wav, dtype="int16")
    if how == "corrupted":
        wav.write_bytes(b"\x07" * wav.stat().st_size)
    elif how == "deleted":
        wav.unlink()
    else:
        soundfile.write(wav, samples[: len(samples) // 2], rate)


@pytest.fixture
def start(make_plan, indexed, tmp_path, steps_from_audio):
    """`start(hook, ...)`: train with a step in every call; three clips in a batch."""
    settings = (*ASSIGNED, "training.steps=32", "training.steps_per_call=1", "data.max_unreadable_fraction=0.1")
    plan = make_plan(tmp_path / "run", *settings, cache=indexed)
    return lambda *hooks: train(plan, Console(file=(tmp_path / "screen.txt").open("w"), width=200), hooks)


@pytest.mark.parametrize(
    "how", ["corrupted", *(pytest.param(how, marks=pytest.mark.long) for how in ("deleted", "swapped"))]
)
def test_a_wav_that_breaks_in_mid_run_is_blank_counted_and_named(start, indexed, corpus, tmp_path, how):
    wav = corpus / "wavs" / "tone-0005.wav"
    before, clips = wav.read_bytes(), load_spec(indexed).statistics.clips
    try:
        assert start(lambda run, _: damage(wav, how) if run.step == 6 else None)
    finally:
        wav.write_bytes(before)
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    counts = [row["unread_clips"] for row in rows if row["split"] == "train"]
    assert len(counts) == 32
    assert sum(counts[:6]) == 0 < sum(counts) <= 3 * 32 / clips + 2
    assert set(counts) == {0.0, 1.0}
    assert all(np.isfinite(row["loss"]) for row in rows)
    said = re.findall(r"step (\d+): the audio of (\S+) is missing, broken", (tmp_path / "screen.txt").read_text())
    assert [name for _, name in said] == ["tone-0005"]
    assert int(said[0][0]) == 1 + counts.index(1.0)


def test_too_many_broken_wavs_end_the_run_with_their_list(start, corpus, tmp_path):
    wavs = [corpus / "wavs" / f"tone-{number:04d}.wav" for number in (1, 2, 3, 4, 6, 7)]
    before = {wav: wav.read_bytes() for wav in wavs}
    for wav in wavs:
        wav.unlink()
    try:
        with pytest.raises(LockstepError) as error:
            start()
    finally:
        for wav, data in before.items():
            wav.write_bytes(data)
    # Clips are decoded in parallel: the batch that ends the run may hold more than one of them.
    found = re.fullmatch(r"(\d+) of \d\d clips could not be read: (.*)", error.value.found)
    assert found, error.value.found
    names = found[2].split(", ")
    assert int(found[1]) == len(names) == len(set(names)) >= 3, error.value.found
    assert set(names) <= {wav.stem for wav in wavs}
    assert error.value.expected == "at most 10.0% (data.max_unreadable_fraction)"
    assert list_checkpoints(tmp_path / "run" / "checkpoints")  # it can be resumed
