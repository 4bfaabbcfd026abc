"""Runs straight from audio, whose wavs break in mid-run."""

import json
import re
import shutil

import numpy as np
import pytest
from cache_files import build_cache
from held_runs import train
from rich.console import Console

from xtts.shared.cache.cache_spec import load_spec
from xtts.shared.config_files import load_config
from xtts.shared.errors import LockstepError
from xtts.trainer.stored.checkpoint import list_checkpoints

ASSIGNED = ("shards.mel_dtype=float32", "split.validation_fraction=0", "training.checkpoint_every=1000")


@pytest.fixture(scope="session")
def corpus(tmp_path_factory, tiny_corpus):
    """A copy whose wavs tests break and put back."""
    return shutil.copytree(tiny_corpus, tmp_path_factory.mktemp("broken") / "corpus")


@pytest.fixture(scope="session")
def indexed(tmp_path_factory, corpus, make_plan, compile_steps):
    """Its cache without mels, one shape, nothing held out; the steps of every run on it are compiled."""
    cache, shape = tmp_path_factory.mktemp("indexed") / "features", ["shapes.buckets=1", *ASSIGNED]
    build_cache(corpus, cache, load_config("tiny", assignments=shape), index_only=True)
    compile_steps(make_plan(cache.parent / "steps", *ASSIGNED, cache=cache))
    return cache


@pytest.fixture
def start(make_plan, indexed, tmp_path):
    """`start(hook, ...)`: train with a step in every call; three clips in a batch."""
    settings = (*ASSIGNED, "training.steps=32", "training.steps_per_call=1", "data.max_unreadable_fraction=0.1")
    plan = make_plan(tmp_path / "run", *settings, cache=indexed)
    return lambda *hooks: train(plan, Console(file=(tmp_path / "screen.txt").open("w"), width=200), hooks)


def test_a_wav_that_breaks_in_mid_run_is_blank_counted_and_named(start, indexed, corpus, tmp_path):
    """In one way; others are in test_audio_source."""
    wav = corpus / "wavs" / "tone-0005.wav"
    before, clips = wav.read_bytes(), load_spec(indexed).statistics.clips
    try:
        assert start(lambda run, _: wav.write_bytes(bytes(len(before))) if run.step == 6 else None)
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
