"""A post-filter of spoken mels: their fine structure, which a model of means leaves too weak, made stronger."""

import numpy as np
from scipy.fft import dct

_GAIN = 1.1
_FIRST, _FULL = 4, 12
"""Cepstral coefficients: the last that keeps its value, and the first with the whole gain. Below are level and tilt."""


def postfilter(channels: int) -> np.ndarray:
    """Return the matrix P, float32[M, M], that sharpens a log-mel float32[..., M] as `mel @ P`.

    It multiplies the higher coefficients of each frame's cepstrum (DCT-II of the log-mel), as the post-filter of
    Yoshimura et al. (2005, "Incorporating a mixed excitation model and postfilter into HMM-based text-to-speech
    synthesis") does with a mel-cepstrum.
    """
    gains = 1.0 + (_GAIN - 1.0) * np.clip((np.arange(channels) - _FIRST) / (_FULL - _FIRST), 0.0, 1.0)
    cosines = dct(np.eye(channels), axis=0, norm="ortho")
    return np.asarray(cosines.T @ (gains[:, np.newaxis] * cosines), np.float32)
