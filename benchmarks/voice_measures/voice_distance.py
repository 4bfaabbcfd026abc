"""A distance between voices, fixed before any training: it is no loss, and no network is in it.

An utterance is described by the mean cepstra of its loud frames (formants and tilt of the spectrum), and by the median
and the spread of its pitch. The coordinates are whitened with the covariance of utterances of one voice around their
mean, pooled over voices: what changes with the words then counts little, what only another voice changes counts much.
Every recording and every synthesised mel is heard through the same Griffin-Lim, so that the vocoder is not measured.
"""

import multiprocessing
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

import librosa
import numpy as np

from xtts.shared.audio.griffin_lim import reconstruct
from xtts.shared.audio.mel import log_mel
from xtts.shared.audio.mel_profiles import MelProfile
from xtts.trainer.evaluation.cepstral_distortion import cepstra

PITCH_HZ = (55.0, 500.0)
_LOUD = 0.1
"""Amplitude of a loud frame as a share of the loudest: vowels, hardly a consonant."""
_SHRINKAGE = 0.1
"""How far the covariance is moved towards its diagonal, for few recordings."""
_WORTH_PROCESSES = 40
"""Utterances: fewer are described sooner than processes start."""


def describe(mel: np.ndarray, profile: MelProfile) -> np.ndarray:
    """Coordinates of an utterance, float64[D]; mel: float32[T, M], natural-log magnitude, of at least 0.2 s."""
    return describe_samples(reconstruct(mel, profile), profile)


def describe_samples(samples: np.ndarray, profile: MelProfile) -> np.ndarray:
    """Mean cepstra 1 to 13, then median and quartile distance of the pitch in octaves: samples float32[S] -> [15]."""
    mel = log_mel(samples.astype(np.float32), profile)
    amplitude = np.exp(mel).mean(axis=1)
    loud = amplitude >= _LOUD * amplitude.max()
    pitch = librosa.yin(
        samples.astype(np.float64), fmin=PITCH_HZ[0], fmax=PITCH_HZ[1], sr=profile.sample_rate,
        frame_length=2 * profile.fft_size, hop_length=profile.hop_samples,
    )  # fmt: skip
    octaves = np.log2(pitch[: len(loud)][loud[: len(pitch)]])
    low, middle, high = np.quantile(octaves, [0.25, 0.5, 0.75])
    return np.concatenate([cepstra(mel)[loud].mean(axis=0), [middle, high - low]])


def describe_all(mels: Mapping[str, Sequence[np.ndarray]], profile: MelProfile) -> dict[str, np.ndarray]:
    """Coordinates float64[N, D] of the utterances of each voice; many are described in a process for each core."""
    order = [mel for some in mels.values() for mel in some]
    if len(order) < _WORTH_PROCESSES:
        found = (describe(mel, profile) for mel in order)
    else:
        # Not forked: TensorFlow's threads may be running.
        with ProcessPoolExecutor(os.cpu_count(), mp_context=multiprocessing.get_context("spawn")) as pool:
            found = iter([*pool.map(partial(describe, profile=profile), order, chunksize=8)])
    return {name: np.stack([next(found) for _ in some]) for name, some in mels.items()}


@dataclass(frozen=True)
class VoiceSpace:
    """Whitened coordinates, in which the Euclidean distance is the distance between voices."""

    whitening: np.ndarray
    """float64[D, D]."""

    @classmethod
    def fit(cls, recordings: Mapping[str, np.ndarray]) -> "VoiceSpace":
        """Of recordings by voice, float64[R, D] each, of at least two voices with at least two recordings."""
        deviations = np.concatenate([clips - clips.mean(axis=0) for clips in recordings.values()])
        pooled = deviations.T @ deviations / (len(deviations) - len(recordings))
        pooled = (1 - _SHRINKAGE) * pooled + _SHRINKAGE * np.diag(np.diag(pooled))
        return cls(np.linalg.inv(np.linalg.cholesky(pooled)))

    def distances(self, clips: np.ndarray, voices: np.ndarray) -> np.ndarray:
        """Distance of each clip to each voice: float64[N, D], float64[V, D] -> float64[N, V]."""
        apart = clips[:, None] - voices[None]
        return np.linalg.norm(apart @ self.whitening.T, axis=-1)


def nearest(space: VoiceSpace, clips: Mapping[str, np.ndarray], voices: Mapping[str, np.ndarray]) -> np.ndarray:
    """How often clips of a voice (row) are nearest to a voice (column): int64[V, V].

    clips: float64[N, D] by voice, voices: recordings float64[R, D] by voice, whose mean stands for it. The first names
    are those of the clips; more may follow, and the table then has more columns than rows.
    """
    names = list(voices)
    middles = np.stack([voices[name].mean(axis=0) for name in names])
    found = [space.distances(clips[name], middles).argmin(axis=1) for name in names[: len(clips)]]
    return np.stack([np.bincount(places, minlength=len(names)) for places in found])


def share_right(table: np.ndarray) -> float:
    """The share of the clips on the diagonal of such a table."""
    return float(np.trace(table) / table.sum())


def likest(
    space: VoiceSpace, voices: Mapping[str, np.ndarray], others: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """For each voice the recordings of the nearest of the others: what a model says that knows only those."""
    middles = np.stack([some.mean(axis=0) for some in others.values()])
    places = space.distances(np.stack([some.mean(axis=0) for some in voices.values()]), middles).argmin(axis=1)
    return {name: [*others.values()][place] for name, place in zip(voices, places, strict=True)}


def shuffled(recordings: Mapping[str, np.ndarray], seed: int) -> dict[str, np.ndarray]:
    """The same recordings under voices drawn at random: what the distance then finds is chance."""
    order = np.random.default_rng(seed).permutation(np.concatenate([*recordings.values()]))
    places = np.cumsum([len(some) for some in recordings.values()])[:-1]
    return dict(zip(recordings, np.split(order, places), strict=True))


def groups(names: Sequence[str], size: int) -> list[Sequence[str]]:
    """Names in groups of `size`, in their order; the last is filled with those before it."""
    starts = [min(start, max(len(names) - size, 0)) for start in range(0, len(names), size)]
    return [names[start : start + size] for start in starts]
