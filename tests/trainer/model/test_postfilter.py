"""The post-filter makes the fine structure of a mel stronger, and leaves its level and its tilt."""

import numpy as np
import pytest

from xtts.trainer.model.postfilter import postfilter


def cosine(coefficient, channels):
    """One coefficient of the cepstrum of M channels."""
    return np.cos(np.pi * coefficient * (np.arange(channels) + 0.5) / channels)


@pytest.mark.parametrize("channels", [80, 100])
@pytest.mark.parametrize(("coefficient", "gain"), [(0, 1.0), (1, 1.0), (4, 1.0), (8, 1.05), (12, 1.1), (79, 1.1)])
def test_only_the_higher_coefficients_become_larger(coefficient, gain, channels):
    shape = cosine(coefficient, channels)
    np.testing.assert_allclose(shape @ postfilter(channels), gain * shape, atol=1e-5)


def test_silence_stays_silence():
    silence = np.full([3, 80], -11.5, np.float32)
    np.testing.assert_allclose(silence @ postfilter(80), silence, atol=1e-4)
