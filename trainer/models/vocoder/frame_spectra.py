"""Spectra of overlapping frames and back, by products with small matrices: in training and in every ONNX runtime.

Letters: B batch, T frames, S = T * hop samples, R = S + N - hop samples with the padding of the outer frames, M mel
channels, F = N / 2 + 1 bins, N = P * Q samples of a frame. Frames come last, so that no product needs a transpose.
Samples are hops float32[Q, hop / Q, B, R / hop]. A spectrum is a grid of Q columns and A = P / 2 + 1 rows, real and
imaginary, with bin `row + P * column`: float32[2, Q * A, B, T]; a bin k above N / 2 is the conjugate of bin N - k.
"""

import numpy as np
import tensorflow as tf

from xtts.shared.audio.mel import hann_window, mel_filterbank
from xtts.shared.audio.mel_profiles import MelProfile
from xtts.trainer.models.layers import axis_size

_SMALLEST, _SMALLEST_WEIGHT = 1e-9, 1e-3
"""Smallest mel, and smallest sum of squared windows, to divide by."""


class FrameSpectra:
    """Fourier transform of a mel profile's frames in two steps (Cooley and Tukey, 1965).

    One product with F waves takes ten times the operations; many runtimes lack ONNX's own operator. The window and the
    factors between the steps are in the first matrices, one for each column.
    """

    def __init__(self, profile: MelProfile) -> None:
        self.profile, size = profile, profile.fft_size
        self._columns = 2 ** (size.bit_length() // 2)
        self._rows, self._shifts = size // self._columns, size // profile.hop_samples
        row, column = np.arange(self._rows // 2 + 1), np.arange(self._columns)
        self.window = hann_window(profile, np.dtype(np.float32))
        sample = np.arange(size).reshape(self._rows, -1).T[:, np.newaxis]
        waves = np.stack(_waves(size, sample * row[:, np.newaxis]), axis=1) * self.window[sample[:, np.newaxis]]
        self._row_waves = waves.reshape(self._columns, -1, self._rows)
        share = np.where(row % (self._rows // 2), 2.0, 1.0) / size  # the rows between stand for their conjugates, too
        self._inverse_row_waves = (self._row_waves * np.tile(share, 2)[:, np.newaxis]).swapaxes(1, 2).astype(np.float32)
        cosine, sine = _waves(self._columns, column[:, np.newaxis] * column)
        column_waves = np.stack([np.stack([cosine, -sine], axis=2), np.stack([sine, cosine], axis=2)])
        self._column_waves = column_waves.reshape(2 * self._columns, 2 * self._columns)
        bins = (row + self._rows * column[:, np.newaxis]).ravel()
        self._bins = np.minimum(bins, size - bins)
        self._sign = np.where(bins > size // 2, -1.0, 1.0).astype(np.float32)
        filters = mel_filterbank(profile).astype(np.float64)
        weights, self._areas = filters.sum(axis=0), filters.sum(axis=1).astype(np.float32)[:, np.newaxis, np.newaxis]
        # Above the last filter as at its edge, where two filters still overlap.
        edge = int(np.flatnonzero(weights).max()) - 2
        shares = filters / np.maximum(weights, _SMALLEST)
        self._shares = shares[:, np.minimum(self._bins, edge)].astype(np.float32).T
        self._filters = (filters / np.bincount(self._bins))[:, self._bins].astype(np.float32)

    def hops(self, padded: tf.Tensor) -> tf.Tensor:
        """Arrange samples float32[B, R] as hops."""
        # Two quick transposes: runtimes reverse four axes ten times as slowly.
        hop = self.profile.hop_samples
        turned = tf.reshape(tf.transpose(tf.reshape(padded, [-1, hop])), [hop // self._columns, self._columns, -1])
        return tf.reshape(tf.transpose(turned, [1, 0, 2]), [*turned.shape[1::-1], padded.shape[0], -1])

    def samples(self, hops: tf.Tensor) -> tf.Tensor:
        """Arrange hops as samples, float32[B, R]."""
        turned = tf.transpose(tf.reshape(hops, [*hops.shape[:2], -1]), [1, 0, 2])
        return tf.reshape(tf.transpose(tf.reshape(turned, [self.profile.hop_samples, -1])), [hops.shape[2], -1])

    def analyse(self, hops: tf.Tensor) -> tf.Tensor:
        """Return the spectrum of the windowed frames of hops."""
        last = 1 - self._shifts
        frames = tf.concat([hops[..., i : (i + last) or None] for i in range(self._shifts)], axis=1)
        rows = tf.matmul(self._row_waves, tf.reshape(frames, [self._columns, self._rows, -1]))
        bins = tf.matmul(self._column_waves, tf.reshape(rows, [2 * self._columns, -1]))
        return tf.reshape(bins, [2, self._bins.size, hops.shape[2], -1])

    def synthesise(self, spectrum: tf.Tensor) -> tf.Tensor:
        """Return the hops whose spectrum is nearest to a given one: weighted overlap-add."""
        rows = tf.matmul(self._column_waves.T, tf.reshape(spectrum, [2 * self._columns, -1]))
        frames = tf.matmul(self._inverse_row_waves, tf.reshape(rows, [self._columns, 2 * (self._rows // 2 + 1), -1]))
        frames = tf.reshape(frames, [self._columns, self._rows, spectrum.shape[2], -1])
        added = tf.add_n([self._shifted(part, i) for i, part in enumerate(tf.split(frames, self._shifts, axis=1))])
        squares = np.square(self.window).reshape(self._shifts, -1, self._columns).T.reshape(-1, self._shifts)
        once = tf.ones([axis_size(frames, 3)])
        weight = tf.matmul(squares, tf.stack([self._shifted(once, i) for i in range(self._shifts)]))
        return added / tf.reshape(tf.maximum(weight, _SMALLEST_WEIGHT), [*added.shape[:2], 1, -1])

    def _shifted(self, frames: tf.Tensor, hops: int) -> tf.Tensor:
        """Place parts of frames [..., T] so many hops later: [..., R / hop]."""
        return tf.pad(frames, [[0, 0]] * (frames.shape.rank - 1) + [[hops, self._shifts - 1 - hops]])

    def project(self, x: tf.Tensor, kernel: tf.Tensor, bias: tf.Tensor, *, odd: bool = False) -> tf.Tensor:
        """Project float32[B, T, D] to a value of each bin, [Q * A, B, T]; odd: of the opposite sign in conjugate bins.

        kernel: float32[D, F], bias: float32[F]. A runtime sorts these once, not the values of every frame.
        """
        sign = self._sign if odd else np.ones_like(self._sign)
        flat, kernel = tf.reshape(x, [-1, x.shape[2]]), tf.gather(kernel, self._bins, axis=1) * sign
        values = tf.matmul(kernel, flat, transpose_a=True, transpose_b=True)
        values += (tf.gather(bias, self._bins) * sign)[:, tf.newaxis]
        return tf.reshape(values, [-1, x.shape[0], axis_size(x, 1)])

    def filter(self, spectrum: tf.Tensor, gain: tf.Tensor, phase: tf.Tensor) -> tf.Tensor:
        """Return a spectrum times gain and phase in radians of each bin, float32[Q * A, B, T]."""
        real, imaginary = tf.unstack(spectrum)
        cosine, sine = gain * tf.cos(phase), gain * tf.sin(phase)
        return tf.stack([real * cosine - imaginary * sine, real * sine + imaginary * cosine])

    def mel(self, spectrum: tf.Tensor, floor: float) -> tf.Tensor:
        """Return the mel of a spectrum, float32[M, B, T]; floor: added to squared magnitudes, for finite gradients."""
        real, imaginary = tf.unstack(spectrum)
        return _product(self._filters, tf.sqrt(tf.square(real) + tf.square(imaginary) + floor))

    def envelope(self, mel: tf.Tensor) -> tf.Tensor:
        """Return magnitudes, float32[Q * A, B, T], that have about the mel float32[M, B, T]."""
        return _product(self._shares, mel / self._areas)

    def matched(self, spectrum: tf.Tensor, mel: tf.Tensor) -> tf.Tensor:
        """Return a spectrum scaled towards a mel, float32[M, B, T], as in `griffin_lim.reconstruct`."""
        ratio = mel / tf.maximum(self.mel(spectrum, _SMALLEST**2), _SMALLEST)
        return spectrum * _product(self._shares, ratio)


def _product(matrix: np.ndarray, x: tf.Tensor) -> tf.Tensor:
    """float32[I, J], float32[J, B, T] -> float32[I, B, T]."""
    return tf.reshape(tf.matmul(matrix, tf.reshape(x, [x.shape[0], -1])), [len(matrix), x.shape[1], -1])


def _waves(length: int, phases: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(real, imaginary) of exp(-2 pi i phases / length), float32."""
    angle = 2.0 * np.pi * (phases % length) / length
    return np.cos(angle).astype(np.float32), -np.sin(angle).astype(np.float32)
