"""Monotonic alignment search against the definition: every path of a small grid, tried one by one."""

import functools
import itertools
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from xtts.trainer.model import alignment
from xtts.trainer.model.alignment import (
    duration_path,
    frame_places,
    gaussian_scores,
    round_durations,
    search_durations,
)

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


@functools.cache
def searching(compiled):
    """One function for all tests, which compiles each shape once."""
    return tf.function(search_durations, jit_compile=compiled)


def search(scores, token_length, mel_length, compiled=True):
    lengths = (tf.constant(token_length, tf.int32), tf.constant(mel_length, tf.int32))
    return searching(compiled)(tf.constant(scores, tf.float32), *lengths).numpy()


def exhaustive(scores, tokens, frames):
    """Durations of the best of all ways to cut `frames` frames into `tokens` parts of at least one frame."""
    best, found = -np.inf, None
    for cuts in itertools.combinations(range(1, frames), tokens - 1):
        edges = [0, *cuts, frames]
        total = sum(scores[i, edges[i] : edges[i + 1]].sum() for i in range(tokens))
        if total > best:
            best, found = total, np.diff(edges)
    return found


def frame_by_frame(scores, token_length, mel_length):
    """The search as Glow-TTS writes it: one frame after the other, then back from token to token."""
    batch, tokens, frames = scores.shape
    best = np.where(np.arange(tokens) == 0, scores[:, :, 0], np.float32(-1e30))
    starts = np.zeros([frames, batch, tokens], np.int64)
    for frame in range(1, frames):
        previous = np.pad(best[:, :-1], [[0, 0], [1, 0]], constant_values=-1e30)
        starts[frame] = np.where(previous > best, frame, starts[frame - 1])
        best = np.maximum(previous, best) + scores[:, :, frame]
    durations = np.zeros([batch, tokens], np.int64)
    for row, (n, end) in enumerate(zip(token_length, mel_length, strict=True)):
        for token in reversed(range(min(n, end))):
            start = starts[max(end - 1, 0), row, token]
            durations[row, token], end = end - start, start
    return durations


def clips(seed, batch, tokens, frames):
    """Scores and lengths of all sorts: ties, far values, clips of fewer frames than tokens, blank ones."""
    random = np.random.default_rng(seed)
    scores = random.normal(size=[batch, tokens, frames]).astype(np.float32)
    scores[1::4] = scores[1::4].round()
    scores[2::4] *= np.float32(1e6)
    scores[3::8] -= np.float32(1e31)
    token_length, mel_length = random.integers(0, tokens + 1, batch), random.integers(0, frames + 1, batch)
    token_length[:2], mel_length[:2] = tokens, frames
    return scores, token_length, mel_length


SIZES = [(1, 1), (2, 2), (5, 8), (4, 9), (3, 10), (8, 16), (21, 17), (9, 18), (21, 64)]


@pytest.mark.parametrize(
    ("tokens", "frames", "compiled"),
    [*((*size, False) for size in SIZES), (1, 1, True), (9, 16, True), (30, 85, True)],
)
def test_blocks_give_what_single_frames_give(tokens, frames, compiled):
    case = clips(tokens, 256, tokens, frames)
    assert (search(*case, compiled) == frame_by_frame(*case)).all()


def test_counts_more_frames_than_16_bits():
    durations = [20_001, 14_999, 1, 4_321]
    scores = np.repeat(np.eye(4, dtype=np.float32), durations, axis=1)[np.newaxis]
    assert search(scores, [4], [scores.shape[2]]).tolist() == [durations]


def test_refuses_more_frames_than_it_can_count(monkeypatch):
    monkeypatch.setattr(alignment, "MOST_FRAMES", 16)
    assert search(np.zeros([1, 2, 16]), [2], [16], False).sum() == 16
    with pytest.raises(ValueError, match="counts to 16 frames, this shape has 17"):
        search(np.zeros([1, 2, 17]), [2], [17], False)


def test_the_search_takes_few_turns_of_its_loops(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from training_parts.kernels import count_kernels

    shapes = [tf.zeros([4, 192, 872]), tf.zeros([4], tf.int32), tf.zeros([4], tf.int32)]
    function = tf.function(search_durations, jit_compile=True)
    counted = count_kernels(function.experimental_get_compiler_ir(*shapes)(stage="optimized_hlo"))
    assert [loop.turns for loop in counted.loops] == [109, 48]
    # 9 and 8 a turn, 10 outside, on a CPU.
    assert all(loop.kernels <= 12 for loop in counted.loops), counted
    assert counted.once <= 15, counted


@pytest.mark.parametrize("compiled", [True, False], ids=["xla", "graph"])
def test_equals_exhaustive_search(compiled):
    tokens, frames = 5, 9
    lengths = [(n, m) for n in range(1, tokens + 1) for m in range(n, frames + 1)]
    token_length, mel_length = (list(side) for side in zip(*lengths, strict=True))
    for seed in range(4):
        scores = np.random.default_rng(seed).normal(size=[len(lengths), tokens, frames])
        found = search(scores, token_length, mel_length, compiled)
        for row, (n, m) in enumerate(lengths):
            assert found[row, :n].tolist() == exhaustive(scores[row], n, m).tolist(), (seed, n, m)
            assert not found[row, n:].any(), (seed, n, m)


@pytest.mark.parametrize("outside", [1e30, -1e30, np.nan, np.inf])
def test_never_looks_outside_the_lengths(outside):
    scores = np.random.default_rng(1).normal(size=[3, 6, 20])
    token_length, mel_length = [6, 3, 2], [20, 11, 2]
    expected = search(scores, token_length, mel_length)
    for row, (n, m) in enumerate(zip(token_length, mel_length, strict=True)):
        scores[row, n:], scores[row, :, m:] = outside, outside
    assert (search(scores, token_length, mel_length) == expected).all()


def test_impossible_and_blank_clips_stay_defined():
    scores = np.random.default_rng(2).normal(size=[4, 5, 8])
    found = search(scores, [5, 5, 0, 5], [3, 0, 0, 1])
    assert found.tolist() == [[1, 1, 1, 0, 0], [0] * 5, [0] * 5, [1, 0, 0, 0, 0]]


def test_scores_are_gaussian_up_to_a_constant_of_the_frame():
    rng = np.random.default_rng(4)
    mean, mel = rng.normal(size=[2, 3, 5]).astype(np.float32), rng.normal(size=[2, 7, 5]).astype(np.float32)
    direct = -0.5 * np.square(mean[:, :, None] - mel[:, None]).sum(-1)
    gap = gaussian_scores(tf.constant(mean), tf.constant(mel)).numpy() - direct
    np.testing.assert_allclose(gap, np.broadcast_to(gap[:, :1], gap.shape), atol=1e-5)


def test_no_gradient_flows_through_the_search():
    scores = tf.random.stateless_normal([2, 3, 6], [0, 0])
    with tf.GradientTape() as tape:
        tape.watch(scores)
        total = tf.reduce_sum(tf.cast(search_durations(scores, tf.constant([3, 2]), tf.constant([6, 4])), tf.float32))
    assert tape.gradient(total, scores) is None


def test_path_spreads_tokens_over_their_frames():
    path = duration_path(tf.constant([[2, 0, 1], [0, 0, 0]]), 5).numpy()
    assert path[0].argmax(axis=-1)[:3].tolist() == [0, 0, 2]
    assert path.sum(axis=-1).tolist() == [[1, 1, 1, 0, 0], [0] * 5]


def test_frames_know_their_tokens():
    durations = np.random.default_rng(6).integers(0, 2_000, [3, 12])
    durations[2] = 0
    frames = 9_000
    first, length = (part.numpy() for part in frame_places(tf.constant(durations, tf.int32), frames))
    for row in range(3):
        starts = durations[row].cumsum() - durations[row]
        for found, values in ((first[row], starts), (length[row], durations[row])):
            expected = np.repeat(values, durations[row])[:frames]
            assert (found[: len(expected)] == expected).all()
            assert not found[len(expected) :].any()


def test_rounded_durations_do_not_drift():
    exact = np.maximum(np.random.default_rng(5).gamma(2.0, 2.0, size=[4, 60]), 1.0).astype(np.float32)
    exact[2, 40:], exact[3] = 0.0, 1.0
    rounded = round_durations(tf.constant(exact)).numpy()
    assert (rounded[exact > 0] >= 1).all()
    assert not rounded[exact == 0].any()
    assert np.abs(rounded.cumsum(axis=1) - exact.cumsum(axis=1, dtype=np.float64)).max() <= 0.501
