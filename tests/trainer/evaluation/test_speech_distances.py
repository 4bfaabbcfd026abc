"""Distortion against a plain reference."""

import math

import numpy as np
import pytest
import scipy.fft

from xtts.trainer.evaluation.speech_distances import DECIBELS, cepstra, warped_distances


def plain_warp(a, b):
    """Mean distance along the cheapest path, cell by cell in float64."""
    total, cells = np.full((len(a) + 1, len(b) + 1), np.inf), np.zeros((len(a) + 1, len(b) + 1))
    total[0, 0] = 0
    for i in range(len(a)):
        for j in range(len(b)):
            best = min([(i, j), (i + 1, j), (i, j + 1)], key=lambda place: total[place])
            total[i + 1, j + 1] = total[best] + math.dist(a[i], b[j])
            cells[i + 1, j + 1] = cells[best] + 1
    return total[-1, -1] / cells[-1, -1]


def test_warping_is_that_of_a_plain_reference():
    random = np.random.default_rng(1)
    for length in (1, 2, 7, 19):
        query = random.standard_normal((length, 13)).astype(np.float32)
        references = [random.standard_normal((n, 13)).astype(np.float32) for n in (1, 2, 5, 18, 9, 18)]
        expected = [DECIBELS * plain_warp(query.tolist(), reference.tolist()) for reference in references]
        np.testing.assert_allclose(warped_distances(query, references), expected, rtol=1e-4)


def test_cepstra_are_a_cosine_transform_without_loudness():
    mel = np.cumsum(np.random.default_rng(0).standard_normal((6, 80)), axis=0).astype(np.float32)
    expected = scipy.fft.dct(mel, type=2, axis=1)[:, 1:14] / 80
    np.testing.assert_allclose(cepstra(mel), expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(cepstra(mel + 3.0), cepstra(mel), atol=1e-4)


def test_the_distance_of_a_ripple_is_its_rms_in_decibels():
    ripple = 0.3 * np.cos(np.pi * 3 * (np.arange(80) + 0.5) / 80)  # nats of magnitude
    flat = np.zeros((4, 80), np.float32)
    (distance,) = warped_distances(cepstra(flat), [cepstra(flat + ripple)])
    assert distance == pytest.approx(np.sqrt(np.mean(np.square(20 / math.log(10) * ripple))), rel=1e-4)
