"""The dynamic baseline: clips padded per batch, traced for each shape; the same order and losses."""

import io

import numpy as np
import pytest
import tensorflow as tf
from cache_files import build_cache
from held_runs import train
from one_bucket import one_bucket
from rich.console import Console

from xtts.shared.cache.cache_spec import load_spec
from xtts.shared.config_files import load_config
from xtts.trainer.data.dataset import training_batches, validation_batches

UNPADDED = (
    "shapes.pad_to_fixed_length=false", "shapes.buckets=1", "model.duration_layers=1", "model.decoder_levels=[]",
)  # fmt: skip


@pytest.fixture(scope="module")
def caches(tmp_path_factory, tiny_corpus, one_shape_cache):
    """(unpadded clips, the same clips padded to one shape)."""
    own = tmp_path_factory.mktemp("dynamic") / "own"
    flags = {"shapes.pad_to_fixed_length": False, "shapes.buckets": 1, "split.validation_fraction": 0.1}
    build_cache(tiny_corpus, own, load_config("tiny", flags=flags))
    return own, one_shape_cache


def test_batches_are_padded_to_their_own_longest_clip(caches):
    """One shard order: in both caches the same clips; that padding changes no loss is in test_padding."""
    specs = [load_spec(cache) for cache in caches]
    assert len({tuple(shard.records for shard in spec.buckets[0].train) for spec in specs}) == 1
    ours, theirs = (list(training_batches(one_bucket(cache, batch_size=3, seed=3), 0).take(4)) for cache in caches)
    for batch, padded in zip(ours, theirs, strict=True):
        tokens, mel, token_length, mel_length, *_ = (part.numpy() for part in batch)
        assert tokens.shape == (3, token_length.max())
        assert mel.shape == (3, mel_length.max(), 80)
        assert len(set(mel_length)) > 1
        np.testing.assert_array_equal(tokens, padded.tokens[:, : tokens.shape[1]])
        np.testing.assert_array_equal(mel, padded.mel[:, : mel.shape[1]])
        np.testing.assert_array_equal(token_length, padded.token_length)
        np.testing.assert_array_equal(mel_length, padded.mel_length)
    assert ours[0].mel.shape[1] < theirs[0].mel.shape[1]
    held_out = list(validation_batches(one_bucket(caches[0], batch_size=2)))
    assert sum(len(batch.mel_length) for batch in held_out) == specs[0].buckets[0].clips("validation")
    assert all(batch.mel.shape[1] == max(batch.mel_length.numpy()) for batch in held_out)


def test_it_trains_warns_and_reports_its_traces(caches, make_plan, monkeypatch, tmp_path, read_steps):
    """Op by op: compiling the shapes is what takes the time of a run."""
    monkeypatch.setattr("xtts.trainer.loop.validation_loop.split_batches", lambda buckets: [])
    plan = make_plan(tmp_path, *UNPADDED, "training.steps=2", "training.log_every=1", cache=caches[0])
    console = Console(record=True, file=io.StringIO(), width=400)
    tf.config.run_functions_eagerly(True)
    try:
        complete, screen = train(plan, console), console.export_text()
    finally:
        tf.config.run_functions_eagerly(False)
    assert complete
    assert "warning: the cache holds unpadded clips, so training stops to trace and compile every new shape" in screen
    assert "build the cache with shapes.pad_to_fixed_length: true" in screen
    assert "compiled bucket" not in screen
    lines = read_steps(tmp_path)
    assert [line["step"] for line in lines] == [1, 2]
    assert np.isfinite([line["loss"] for line in lines]).all()
    assert [line["traces"] for line in lines] == [1, 2]  # the two batches differ in their longest clips
    assert "traces 2" in screen
    assert (tmp_path / "checkpoints" / "step-2").is_dir()
