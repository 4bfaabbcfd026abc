"""How close speech is to its own recording, by several figures: none of them sees everything. Needs no TensorFlow.

N spoken sentences, R recordings. Distances are MCD-DTW in dB, see `warped_distances`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from xtts.shared.audio.griffin_lim import reconstruct
from xtts.shared.audio.mel import log_mel
from xtts.shared.audio.mel_profiles import MelProfile
from xtts.trainer.evaluation.speech_distances import (
    RANGE_LOG_F0,
    FrechetDistance,
    cepstra,
    distance_of_halves,
    pause_seconds,
    pitch_errors,
    pitch_track,
    warped_distances,
    warping_path,
)

_MOST_VOCODED = 16
_PITCH_ITERATIONS = 30
"""Of Griffin-Lim. Of 15 German recordings 29% of the frames are voiced, and vocoded with 10 iterations 19%, two clips
without a voiced frame; with 30 28%, with 60 29%."""


@dataclass(frozen=True, kw_only=True)
class Sentence:
    """The figures of one sentence."""

    clip_id: str
    mcd_db: float
    """MCD-DTW to its own recording."""
    relative_mcd: float
    """`mcd_db` over the MCD-DTW between its own and the nearest other recording: 1 means no closer than another
    sentence of the same voice."""
    duration_error: float
    """|length - its recording's length| / its recording's length."""
    log_f0_error: float | None
    """`PitchErrors.log_f0` to its recording."""
    voicing_error: float
    """`PitchErrors.voicing` to its recording."""
    pause_error: float
    """|seconds of its pauses - those of its recording's|."""
    nearest: str
    """Clip with the nearest recording of all."""


@dataclass(frozen=True, kw_only=True)
class Figures:
    """Of sentences together; but for the second, means."""

    relative_mcd: float
    frechet_distance: float
    """`FrechetDistance` of all sentences to their recordings."""
    log_f0_error: float
    voicing_error: float
    pause_error: float
    duration_error: float
    mcd_db: float
    retrieval_at_1: float
    """Share of the sentences whose own recording is the nearest of all recordings."""


class Recordings:
    """Recordings with which speech of their sentences is compared."""

    def __init__(
        self, mels: Sequence[np.ndarray], clip_ids: Sequence[str], own: Sequence[int], profile: MelProfile
    ) -> None:  # fmt: skip
        """mels: R log-mels [T, M], at least two, own: the N of them whose sentences are spoken."""
        self._mels, self._ids, self._own, self._profile = mels, clip_ids, own, profile
        self._cepstra = [cepstra(mel) for mel in mels]
        recorded = np.array([warped_distances(self._cepstra[i], self._cepstra) for i in own])
        recorded[np.arange(len(own)), own] = np.inf
        # Two recordings may be identical: then nothing is nearer than the wrong one.
        self._nearest_wrong = np.maximum(recorded.min(axis=1), 1e-6)
        self._tracks = [self._pitch(mels[i]) for i in own]

    def _pitch(self, mel: np.ndarray) -> np.ndarray:
        samples = reconstruct(mel, self._profile, iterations=_PITCH_ITERATIONS)
        return pitch_track(samples, self._profile, len(mel))

    def compare(
        self, spoken: Sequence[np.ndarray], frames: Sequence[int], rows: Sequence[int] | None = None
    ) -> tuple[Figures, list[Sentence]]:
        """Of N sentences, log-mels [T, M], together and one by one.

        frames: their lengths, had none been cut off; rows: which of the N they are, where only some are spoken. Both
        sides of a figure passed the same: pitch is that of vocoded mels, all else that of mels.
        """
        rows = range(len(self._own)) if rows is None else rows
        sentences = []
        for row, mel, length in zip(rows, spoken, frames, strict=True):
            place = self._own[row]
            recording, query = self._mels[place], cepstra(mel)
            distances = warped_distances(query, self._cepstra)
            pitch = pitch_errors(self._pitch(mel), self._tracks[row], warping_path(query, self._cepstra[place]))
            pauses = [pause_seconds(either, self._profile) for either in (mel, recording)]
            sentences.append(
                Sentence(
                    clip_id=self._ids[place],
                    mcd_db=float(distances[place]),
                    relative_mcd=float(distances[place] / self._nearest_wrong[row]),
                    duration_error=abs(length - len(recording)) / len(recording),
                    log_f0_error=pitch.log_f0,
                    voicing_error=pitch.voicing,
                    pause_error=abs(pauses[0] - pauses[1]),
                    nearest=self._ids[int(np.argmin(distances))],
                )
            )
        frechet = FrechetDistance([self._mels[self._own[row]] for row in rows])
        return mean_figures(sentences, frechet(spoken)), sentences

    def vocoded(self) -> tuple[Figures, list[Sentence]]:
        """`compare` of recordings themselves after the vocoder: what it costs, which differs little between them."""
        rows = spread(len(self._own), _MOST_VOCODED)
        recorded = [self._mels[self._own[row]] for row in rows]
        mels = [log_mel(reconstruct(mel, self._profile), self._profile) for mel in recorded]
        return self.compare(mels, [len(mel) for mel in mels], rows)

    @property
    def frechet_floor(self) -> float | None:
        """`distance_of_halves` of the N recordings; None of a single one."""
        return None if len(self._own) < 2 else distance_of_halves([self._mels[i] for i in self._own])


def spread(clips: int, limit: int) -> list[int]:
    """At most `limit` indices, evenly spaced over `clips`."""
    chosen = min(clips, limit)
    return [i * clips // chosen for i in range(chosen)]


def mean_figures(sentences: Sequence[Sentence], frechet_distance: float) -> Figures:
    """Means over at least one sentence, beside the Fréchet distance of all.

    Pitch is that of sentences with voiced pairs; where none has one the error is the whole range of voices, not 0.
    """
    names = ("relative_mcd", "log_f0_error", "voicing_error", "pause_error", "duration_error", "mcd_db")
    columns = {name: [getattr(sentence, name) for sentence in sentences] for name in names}
    columns["log_f0_error"] = [error for error in columns["log_f0_error"] if error is not None] or [RANGE_LOG_F0]
    means = {name: float(np.mean(column)) for name, column in columns.items()}
    retrieved = float(np.mean([sentence.nearest == sentence.clip_id for sentence in sentences]))
    return Figures(frechet_distance=frechet_distance, retrieval_at_1=retrieved, **means)
