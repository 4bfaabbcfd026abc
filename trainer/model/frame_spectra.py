"""Spectra of overlapping frames and back, by products with small matrices: in training and in every ONNX runtime.

Letters: B batch, T frames, S = T * hop samples, R = S + N - hop samples with the padding of the outer frames, M mel
channels, F = N / 2 + 1 bins, N = P * Q samples of a frame. A spectrum is a grid of A = P / 2 + 1 rows and Q columns
with bin `row + P * column`; a bin k above N / 2 is the conjugate of bin N - k.
"""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from xtts.shared.audio.mel import hann_window, mel_filterbank
from xtts.shared.audio.mel_profiles import MelProfile
from xtts.trainer.model.layers import axis_size

_SMALLEST, _SMALLEST_WEIGHT = 1e-9, 1e-3
"""Least mel, and least sum of squared windows, to divide by."""


class Spectrum(NamedTuple):
    """Complex bins of frames, float32[B, T, A, Q] each."""

    real: tf.Tensor
    imaginary: tf.Tensor

    def times(self, other: "Spectrum") -> "Spectrum":
        """The product of two spectra."""
        real = self.real * other.real - self.imaginary * other.imaginary
        return Spectrum(real, self.real * other.imaginary + self.imaginary * other.real)

    def plus(self, other: "Spectrum") -> "Spectrum":
        """The sum of two spectra."""
        return Spectrum(self.real + other.real, self.imaginary + other.imaginary)

    def scaled(self, gain: tf.Tensor) -> "Spectrum":
        """The product with a real gain."""
        return Spectrum(self.real * gain, self.imaginary * gain)


class FrameSpectra:
    """Fourier transform of a mel profile's frames in two steps (Cooley and Tukey, 1965).

    One product with F waves takes ten times the operations; many runtimes lack ONNX's own operator.
    """

    def __init__(self, profile: MelProfile) -> None:
        self.profile, size = profile, profile.fft_size
        self._columns = 2 ** (size.bit_length() // 2)
        self._rows = size // self._columns
        row, column = np.arange(self._rows // 2 + 1)[:, None], np.arange(self._columns)
        self.window = hann_window(profile, np.dtype(np.float32))
        self._row_waves = np.concatenate(_waves(self._rows, row * np.arange(self._rows)))
        self._turn = Spectrum(*_waves(size, row * column))
        cosine, sine = _waves(self._columns, column[:, None] * column)
        self._column_waves = np.block([[cosine, sine], [-sine, cosine]])
        share = np.where(row % (self._rows // 2), 2.0, 1.0) / size  # the rows between stand for their conjugates, too
        self._inverse_row_waves = (self._row_waves * np.tile(share, (2, 1))).T.astype(np.float32)
        bins = row + self._rows * column
        self._bins = np.minimum(bins, size - bins)
        self._sign = np.where(bins > size // 2, -1.0, 1.0).astype(np.float32)
        filters = mel_filterbank(profile).astype(np.float64)
        weights, self._areas = filters.sum(axis=0), filters.sum(axis=1).astype(np.float32)
        # Above the last filter as at its edge, where two filters still overlap.
        edge = int(np.flatnonzero(weights).max()) - 2
        shares = filters / np.maximum(weights, _SMALLEST)
        self._shares = shares[:, np.minimum(self._bins, edge).ravel()].astype(np.float32)
        self._weights = (weights / np.bincount(self._bins.ravel()))[self._bins].astype(np.float32)

    def analyse(self, padded: tf.Tensor) -> Spectrum:
        """Return the spectrum of the windowed frames of float32[B, R]."""
        hop, shifts = self.profile.hop_samples, self.profile.fft_size // self.profile.hop_samples
        blocks = tf.reshape(padded, [axis_size(padded, 0), -1, hop])
        frames = axis_size(blocks, 1) - shifts + 1
        windowed = tf.concat([blocks[:, i : i + frames] for i in range(shifts)], axis=2) * self.window
        grid = tf.reshape(windowed, [-1, frames, self._rows, self._columns])
        rows = Spectrum(*tf.split(tf.matmul(self._row_waves, grid), 2, axis=2)).times(self._turn)
        return Spectrum(*tf.split(tf.matmul(tf.concat(rows, axis=3), self._column_waves), 2, axis=3))

    def synthesise(self, spectrum: Spectrum) -> tf.Tensor:
        """Return the samples float32[B, R] whose spectrum is nearest to a given one: weighted overlap-add."""
        size, frames = self.profile.fft_size, axis_size(spectrum.real, 1)
        columns = tf.matmul(tf.concat(spectrum, axis=3), self._column_waves, transpose_b=True)
        real, imaginary = Spectrum(*tf.split(columns, 2, axis=3)).times(
            Spectrum(self._turn.real, -self._turn.imaginary)
        )
        grid = tf.matmul(self._inverse_row_waves, tf.concat([real, imaginary], axis=2))
        weight = _add_overlapping(tf.ones([1, frames, 1]) * tf.square(self.window), self.profile.hop_samples)
        windowed = tf.reshape(grid, [-1, frames, size]) * self.window
        return _add_overlapping(windowed, self.profile.hop_samples) / tf.maximum(weight, _SMALLEST_WEIGHT)

    def filter(self, spectrum: Spectrum, gain: tf.Tensor, phase: tf.Tensor | None = None) -> Spectrum:
        """Return a spectrum times gain and phase in radians of each bin, float32[B, T, F]."""
        scaled = spectrum.scaled(tf.gather(gain, self._bins, axis=2))
        if phase is None:
            return scaled
        turn = tf.gather(phase, self._bins, axis=2) * self._sign
        return scaled.times(Spectrum(tf.cos(turn), tf.sin(turn)))

    def mel(self, spectrum: Spectrum, floor: float) -> tf.Tensor:
        """Return the mel of a spectrum, float32[B, T, M]; floor: added to squared magnitudes, for finite gradients."""
        magnitude = tf.sqrt(tf.square(spectrum.real) + tf.square(spectrum.imaginary) + floor) * self._weights
        flat = tf.reshape(magnitude, [-1, axis_size(magnitude, 1), self._bins.size])
        # This order needs no second, transposed copy of the constant in a graph.
        return tf.transpose(tf.matmul(self._shares, flat, transpose_b=True), [0, 2, 1])

    def envelope(self, mel: tf.Tensor) -> tf.Tensor:
        """Return magnitudes, float32[B, T, A, Q], that have about the mel float32[B, T, M]."""
        return self._spread(mel / self._areas)

    def matched(self, spectrum: Spectrum, mel: tf.Tensor) -> Spectrum:
        """Return a spectrum scaled towards a mel, float32[B, T, M], as in `griffin_lim.reconstruct`."""
        return spectrum.scaled(self._spread(mel / tf.maximum(self.mel(spectrum, _SMALLEST**2), _SMALLEST)))

    def _spread(self, values: tf.Tensor) -> tf.Tensor:
        """Values of mel channels, float32[B, T, M], to the bins of their filters: [B, T, A, Q]."""
        spread = tf.matmul(values, self._shares)
        return tf.reshape(spread, [-1, axis_size(values, 1), *self._bins.shape])


def _waves(length: int, phases: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(real, imaginary) of exp(-2 pi i phases / length), float32."""
    angle = 2.0 * np.pi * (phases % length) / length
    return np.cos(angle).astype(np.float32), -np.sin(angle).astype(np.float32)


def _add_overlapping(frames: tf.Tensor, hop: int) -> tf.Tensor:
    """float32[B, T, N] -> float32[B, (T - 1) * hop + N], N a multiple of hop."""
    shifts = frames.shape[2] // hop
    pieces = tf.split(frames, shifts, axis=2)
    padded = [tf.pad(piece, [[0, 0], [i, shifts - 1 - i], [0, 0]]) for i, piece in enumerate(pieces)]
    added = tf.add_n(padded)
    return tf.reshape(added, [tf.shape(frames)[0], axis_size(added, 1) * hop])
