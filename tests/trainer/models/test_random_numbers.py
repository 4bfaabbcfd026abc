import math

import numpy as np
import pytest
import tensorflow as tf

from xtts.trainer.models.random_numbers import random_bits, random_normal, spread_times

SEED = tf.constant([123, 456])
CLIPS = tf.range(16)


def bits(seed=SEED, clips=CLIPS, length=50):
    return random_bits(seed, clips, length, 80).numpy()


def test_every_bit_is_set_half_of_the_time():
    drawn = bits()
    shares = [np.mean((drawn >> np.uint32(bit)) & np.uint32(1)) for bit in range(32)]
    np.testing.assert_allclose(shares, 0.5, atol=5 * 0.5 / math.sqrt(drawn.size))


def test_neighbours_are_independent_and_normal():
    drawn = random_normal(SEED, tf.range(64), 100, 80).numpy()
    assert np.isfinite(drawn).all()
    assert drawn.mean() == pytest.approx(0.0, abs=0.02)
    for sigma, share in ((1, 0.3173), (2, 0.0455), (3, 0.0027)):
        assert np.mean(np.abs(drawn) > sigma) == pytest.approx(share, rel=0.1)
    for axis in range(3):
        ours, theirs = np.delete(drawn, -1, axis), np.delete(drawn, 0, axis)
        assert np.mean(ours * theirs) == pytest.approx(0.0, abs=5 / math.sqrt(ours.size))
        assert np.mean(ours**2 * theirs**2) == pytest.approx(1.0, abs=0.1)


def test_a_random_number_does_not_depend_on_its_batch():
    whole = bits()
    np.testing.assert_array_equal(bits(length=20), whole[:, :20])
    np.testing.assert_array_equal(bits(clips=CLIPS[3:5]), whole[3:5])


def test_times_of_neighbouring_clips_cover_the_interval():
    for first in (0, 7, 1_000_000):
        times = np.sort(spread_times(tf.range(first, first + 55)).numpy())
        gaps = np.diff([*times, times[0] + 1.0])
        assert gaps.max() < 2.7 / 55  # three gap theorem: at most phi^2 times the mean
        assert times.mean() == pytest.approx(0.5, abs=0.02)
