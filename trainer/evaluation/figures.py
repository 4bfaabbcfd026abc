"""How close speech is to its own recording, by several figures: none of them sees everything. Needs no TensorFlow.

N spoken sentences, R recordings. Distances are MCD-DTW in dB, see `warped_distances`. No figure counts the silent edges
of clips.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from xtts.shared.audio.griffin_lim import reconstruct
from xtts.shared.audio.mel import log_mel
from xtts.shared.audio.mel_profiles import EDGE_FRAMES, MelProfile
from xtts.shared.audio.pitch import shimmer, track_pitch
from xtts.trainer.evaluation.held_out_clips import HeldOutClip
from xtts.trainer.evaluation.speech_distances import (
    PATCH_FRAMES,
    RANGE_LOG_F0,
    FrechetDistance,
    cepstra,
    pause_seconds,
    pitch_errors,
    warped_distances,
    warping_path,
)

_MOST_VOCODED = 16


@dataclass(frozen=True, kw_only=True)
class Sentence:
    """The figures of one sentence."""

    clip_id: str
    mcd_db: float
    """MCD-DTW to its own recording."""
    relative_mcd: float
    """`mcd_db` over the MCD-DTW between its own recording and the nearest of another sentence: 1 means no closer than
    another sentence of the same voice."""
    duration_error: float
    """|length - its recording's length| / its recording's length."""
    log_f0_error: float | None
    """`PitchErrors.log_f0` to its recording."""
    voicing_error: float
    """`PitchErrors.voicing` to its recording."""
    shimmer: float | None
    """Its own roughness, not a difference."""
    pause_error: float
    """|seconds of its pauses - those of its recording's|."""
    nearest: str
    """Clip with the nearest recording of all; its own, where that is another reading of the sentence."""


@dataclass(frozen=True, kw_only=True)
class Figures:
    """Of sentences together; but for the second, means."""

    relative_mcd: float
    frechet_distance: float
    """`FrechetDistance` of all sentences to their recordings."""
    log_f0_error: float
    voicing_error: float
    shimmer: float | None
    """None without voiced sentences."""
    pause_error: float
    duration_error: float
    mcd_db: float
    retrieval_at_1: float
    """Share of the sentences whose own recording is the nearest of all recordings."""


class Recordings:
    """Recordings with which speech of their sentences is compared."""

    def __init__(self, clips: Sequence[HeldOutClip], own: Sequence[int], profile: MelProfile) -> None:
        """clips: R, of at least two sentences, own: the N of them whose sentences are spoken."""
        self._clips, self._own, self._profile = clips, own, profile
        self._mels = [without_edges(clip.mel) for clip in clips]
        self._cepstra = [cepstra(mel) for mel in self._mels]
        distances = np.array([warped_distances(self._cepstra[i], self._cepstra) for i in own])
        # Another reading of a sentence is no wrong recording.
        self._same = [[clip.ids == clips[i].ids for clip in clips] for i in own]
        # Two recordings may be identical: then nothing is nearer than the wrong one.
        self._nearest_wrong = np.maximum(np.where(self._same, np.inf, distances).min(axis=1), 1e-6)
        self._tracks = [self._voice(self._mels[i])[0] for i in own]

    def _voice(self, mel: np.ndarray) -> tuple[np.ndarray, float | None]:
        """(pitch, shimmer) of a mel after the vocoder."""
        samples = reconstruct(mel, self._profile)
        hertz = track_pitch(samples, self._profile, len(mel))
        return hertz, shimmer(samples, hertz, self._profile)

    def compare(
        self, spoken: Sequence[np.ndarray], frames: Sequence[int], rows: Sequence[int] | None = None
    ) -> tuple[Figures, list[Sentence]]:
        """Of N sentences, log-mels [T, M], together and one by one.

        frames: their lengths, had none been cut off; rows: which of the N they are, where only some are spoken. Both
        sides of a figure passed the same: pitch is that of vocoded mels, all else that of mels.
        """
        rows = range(len(self._own)) if rows is None else rows
        mels, sentences = [without_edges(mel) for mel in spoken], []
        for row, mel, length in zip(rows, mels, frames, strict=True):
            number = self._own[row]
            recording, query = self._mels[number], cepstra(mel)
            distances = warped_distances(query, self._cepstra)
            hertz, roughness = self._voice(mel)
            pitch = pitch_errors(hertz, self._tracks[row], warping_path(query, self._cepstra[number]))
            nearest = int(np.argmin(distances))
            pauses = [pause_seconds(either, self._profile) for either in (mel, recording)]
            sentences.append(
                Sentence(
                    clip_id=self._clips[number].clip_id,
                    mcd_db=float(distances[number]),
                    relative_mcd=float(distances[number] / self._nearest_wrong[row]),
                    duration_error=abs(length - len(self._clips[number].mel)) / len(recording),
                    log_f0_error=pitch.log_f0,
                    voicing_error=pitch.voicing,
                    shimmer=roughness,
                    pause_error=abs(pauses[0] - pauses[1]),
                    nearest=self._clips[number if self._same[row][nearest] else nearest].clip_id,
                )
            )
        return mean_figures(sentences, self._frechet(rows)(mels)), sentences

    def vocoded(self) -> tuple[Figures, list[Sentence]]:
        """`compare` of recordings themselves after the vocoder: what it costs, which differs little between them."""
        rows = spread(len(self._own), _MOST_VOCODED)
        recorded = [self._clips[self._own[row]].mel for row in rows]
        mels = [log_mel(reconstruct(mel, self._profile), self._profile) for mel in recorded]
        return self.compare(mels, [len(mel) for mel in mels], rows)

    def frechet_distance(self, clips: Sequence[HeldOutClip]) -> float:
        """The Fréchet distance of recordings of other sentences: that of speech by the same person."""
        return self._frechet(range(len(self._own)))([without_edges(clip.mel) for clip in clips])

    def _frechet(self, rows: Sequence[int]) -> FrechetDistance:
        return FrechetDistance([self._mels[self._own[row]] for row in rows])


def without_edges(mel: np.ndarray) -> np.ndarray:
    """The mel of a clip without its silent edges: [T, M] -> [T', M]; of a few frames where it has few."""
    return mel[EDGE_FRAMES : max(len(mel) - EDGE_FRAMES, EDGE_FRAMES + PATCH_FRAMES)]


def spread(clips: int, limit: int) -> list[int]:
    """At most `limit` indices, evenly spaced over `clips`."""
    chosen = min(clips, limit)
    return [i * clips // chosen for i in range(chosen)]


def mean_figures(sentences: Sequence[Sentence], frechet_distance: float) -> Figures:
    """Means over at least one sentence, beside the Fréchet distance of all.

    Pitch is that of sentences with voiced pairs; where none has one the error is the whole range of voices, not 0.
    """
    names = ("relative_mcd", "log_f0_error", "voicing_error", "shimmer", "pause_error", "duration_error", "mcd_db")
    columns = {name: [getattr(sentence, name) for sentence in sentences] for name in names}
    known = {name: [value for value in column if value is not None] for name, column in columns.items()}
    known["log_f0_error"] = known["log_f0_error"] or [RANGE_LOG_F0]
    means = {name: float(np.mean(column)) if column else None for name, column in known.items()}
    retrieved = float(np.mean([sentence.nearest == sentence.clip_id for sentence in sentences]))
    return Figures(frechet_distance=frechet_distance, retrieval_at_1=retrieved, **means)  # type: ignore[arg-type]
