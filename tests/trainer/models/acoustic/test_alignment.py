"""Monotonic alignment search against the definition: every path of a small grid, tried one by one."""

import functools
import itertools
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from xtts.trainer.models.acoustic import alignment
from xtts.trainer.models.acoustic.alignment import gaussian_scores, round_durations, search_durations

WHOLE_BLOCK = alignment.BLOCK_FRAMES
BENCHMARKS = Path(__file__).parents[4] / "benchmarks"


@functools.cache
def searching(compiled, block):
    """One function for all tests of blocks as long, which compiles each shape once."""
    return tf.function(search_durations, jit_compile=compiled)


def search(scores, token_length, mel_length, compiled=True):
    lengths = (tf.constant(token_length, tf.int32), tf.constant(mel_length, tf.int32))
    return searching(compiled, alignment.BLOCK_FRAMES)(tf.constant(scores, tf.float32), *lengths).numpy()


def exhaustive(scores, tokens, frames):
    """Durations of the best of all ways to cut `frames` frames into `tokens` parts of at least one frame."""
    cuts = np.array(list(itertools.combinations(range(1, frames), tokens - 1)), int)
    edges = np.pad(cuts.reshape(len(cuts), tokens - 1), [(0, 0), (1, 1)], constant_values=((0, 0), (0, frames)))
    sums = np.pad(scores[:tokens].astype(np.float64).cumsum(1), [(0, 0), (1, 0)])
    tokens = np.arange(tokens)
    totals = (sums[tokens, edges[:, 1:]] - sums[tokens, edges[:, :-1]]).sum(1)
    return np.diff(edges[totals.argmax()])


@pytest.mark.parametrize(("tokens", "frames", "compiled", "block"), [
    (1, 1, False, 4), (2, 2, False, 4), (5, 9, True, WHOLE_BLOCK), (5, 9, False, 4), (9, 13, False, 4),
    (3, 26, False, WHOLE_BLOCK),
])
def test_equals_exhaustive_search(tokens, frames, compiled, block, monkeypatch):
    """Over several blocks."""
    monkeypatch.setattr(alignment, "BLOCK_FRAMES", block)
    lengths = [(n, m) for n in range(1, tokens + 1) for m in range(max(n, frames - 8), frames + 1)]
    scores = np.random.default_rng(tokens).normal(size=[len(lengths), tokens, frames]).astype(np.float32)
    scores[1::3] *= np.float32(1e6)
    scores[2::3] = scores[2::3].round()  # of equal paths the one that enters tokens first
    found = search(scores, *zip(*lengths, strict=True), compiled)
    for row, (n, m) in enumerate(lengths):
        assert found[row, :n].tolist() == exhaustive(scores[row], n, m).tolist(), (n, m)
        assert not found[row, n:].any(), (n, m)


def test_clips_with_fewer_frames_than_tokens_stay_defined():
    found = search(np.random.default_rng(2).normal(size=[4, 5, 8]), [5, 5, 0, 5], [3, 0, 0, 1], compiled=False)
    assert found.tolist() == [[1, 1, 1, 0, 0], [0] * 5, [0] * 5, [1, 0, 0, 0, 0]]


def test_the_search_takes_few_turns_of_its_loops(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from training_parts.kernels import count_kernels

    monkeypatch.setattr(alignment, "BLOCK_FRAMES", WHOLE_BLOCK)
    shapes = [tf.zeros([4, 192, 872]), tf.zeros([4], tf.int32), tf.zeros([4], tf.int32)]
    function = tf.function(search_durations, jit_compile=True)
    counted = count_kernels(function.experimental_get_compiler_ir(*shapes)(stage="optimized_hlo"))
    assert [loop.turns for loop in counted.loops] == [55]
    # 7 a turn, 25 outside, on a CPU.
    assert counted.loops[0].kernels <= 8, counted
    assert counted.once <= 30, counted


@pytest.mark.parametrize("outside", [1e30, np.nan, np.inf])
def test_never_looks_outside_the_lengths(outside):
    scores = np.random.default_rng(1).normal(size=[3, 6, 20])
    token_length, mel_length = [6, 3, 2], [20, 11, 2]
    expected = search(scores, token_length, mel_length)
    for row, (n, m) in enumerate(zip(token_length, mel_length, strict=True)):
        scores[row, n:], scores[row, :, m:] = outside, outside
    assert (search(scores, token_length, mel_length) == expected).all()


def test_scores_are_gaussian_up_to_a_constant_of_the_frame():
    rng = np.random.default_rng(4)
    mean, mel = rng.normal(size=[2, 3, 5]).astype(np.float32), rng.normal(size=[2, 7, 5]).astype(np.float32)
    direct = -0.5 * np.square(mean[:, :, None] - mel[:, None]).sum(-1)
    gap = gaussian_scores(tf.constant(mean), tf.constant(mel)).numpy() - direct
    np.testing.assert_allclose(gap, np.broadcast_to(gap[:, :1], gap.shape), atol=1e-5)


def test_rounded_durations_do_not_drift():
    exact = np.maximum(np.random.default_rng(5).gamma(2.0, 2.0, size=[4, 60]), 1.0).astype(np.float32)
    exact[2, 40:], exact[3] = 0.0, 1.0
    rounded = round_durations(tf.constant(exact)).numpy()
    assert (rounded[exact > 0] >= 1).all()
    assert not rounded[exact == 0].any()
    assert np.abs(rounded.cumsum(axis=1) - exact.cumsum(axis=1, dtype=np.float64)).max() <= 0.501
