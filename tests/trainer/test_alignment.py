"""Monotonic alignment search against the definition: every path of a small grid, tried one by one."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from xtts.trainer.alignment import duration_path, gaussian_scores, round_durations, search_durations

COMPILED = [pytest.param(True, id="xla"), pytest.param(False, id="graph")]


def search(scores, token_length, mel_length, compiled):
    function = tf.function(search_durations, jit_compile=compiled)
    lengths = (tf.constant(token_length, tf.int32), tf.constant(mel_length, tf.int32))
    return function(tf.constant(scores, tf.float32), *lengths).numpy()


def exhaustive(scores, tokens, frames):
    """Durations of the best of all ways to cut `frames` frames into `tokens` parts of at least one frame."""
    best, found = -np.inf, None
    for cuts in itertools.combinations(range(1, frames), tokens - 1):
        edges = [0, *cuts, frames]
        total = sum(scores[i, edges[i] : edges[i + 1]].sum() for i in range(tokens))
        if total > best:
            best, found = total, np.diff(edges)
    return found


@pytest.mark.parametrize("compiled", COMPILED)
@pytest.mark.parametrize("seed", range(4))
def test_equals_exhaustive_search(seed, compiled):
    tokens, frames = 5, 9
    lengths = [(n, m) for n in range(1, tokens + 1) for m in range(n, frames + 1)]
    token_length, mel_length = (list(side) for side in zip(*lengths, strict=True))
    scores = np.random.default_rng(seed).normal(size=[len(lengths), tokens, frames])
    found = search(scores, token_length, mel_length, compiled)
    for row, (n, m) in enumerate(lengths):
        assert found[row, :n].tolist() == exhaustive(scores[row], n, m).tolist(), (n, m)
        assert not found[row, n:].any(), (n, m)


def test_holds_its_invariants_at_full_size():
    rng = np.random.default_rng(0)
    token_length = rng.integers(1, 81, size=16)
    mel_length = np.minimum(312, token_length + rng.integers(0, 240, size=16))
    found = search(rng.normal(size=[16, 80, 312]), token_length, mel_length, True)
    inside = np.arange(80) < token_length[:, None]
    assert (found[inside] >= 1).all()
    assert not found[~inside].any()
    assert (found.sum(axis=1) == mel_length).all()


@pytest.mark.parametrize("outside", [1e30, -1e30, np.nan, np.inf])
def test_never_looks_outside_the_lengths(outside):
    rng = np.random.default_rng(1)
    scores = rng.normal(size=[3, 6, 20])
    token_length, mel_length = [6, 3, 2], [20, 11, 2]
    expected = search(scores, token_length, mel_length, True)
    for row, (n, m) in enumerate(zip(token_length, mel_length, strict=True)):
        scores[row, n:], scores[row, :, m:] = outside, outside
    assert (search(scores, token_length, mel_length, True) == expected).all()


def test_impossible_and_blank_clips_stay_defined():
    scores = np.random.default_rng(2).normal(size=[4, 5, 8])
    found = search(scores, [5, 5, 0, 5], [3, 0, 0, 1], True)
    assert found.tolist() == [[1, 1, 1, 0, 0], [0] * 5, [0] * 5, [1, 0, 0, 0, 0]]


@pytest.mark.parametrize("compiled", COMPILED)
def test_finds_a_planted_alignment(compiled):
    rng = np.random.default_rng(3)
    durations = np.array([[3, 1, 7, 2], [5, 4, 0, 0]])
    mean = rng.normal(size=[2, 4, 16]).astype(np.float32) * 3
    mel = np.zeros([2, 13, 16], np.float32)
    for row in range(2):
        spoken = np.repeat(mean[row], durations[row], axis=0)
        mel[row, : len(spoken)] = spoken + rng.normal(size=spoken.shape)
    scores = gaussian_scores(tf.constant(mean), tf.constant(mel))
    assert search(scores, [4, 2], [13, 9], compiled).tolist() == durations.tolist()


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


def test_rounded_durations_do_not_drift():
    rng = np.random.default_rng(5)
    exact = np.maximum(rng.gamma(2.0, 2.0, size=[4, 60]), 1.0).astype(np.float32)
    exact[2, 40:], exact[3] = 0.0, 1.0
    rounded = round_durations(tf.constant(exact)).numpy()
    assert (rounded[exact > 0] >= 1).all()
    assert not rounded[exact == 0].any()
    assert np.abs(rounded.cumsum(axis=1) - exact.cumsum(axis=1, dtype=np.float64)).max() <= 0.501
