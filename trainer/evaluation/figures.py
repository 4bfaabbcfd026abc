"""Figures of how close speech is to its own recording; none of them sees everything. Needs no TensorFlow.

Letters: N spoken sentences, R recordings, T frames, M mel channels. Distances are MCD-DTW in dB, see
`warped_distances`. No figure counts the silent edges of clips.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from xtts.shared.audio.griffin_lim import reconstruct
from xtts.shared.audio.mel import log_mel
from xtts.shared.audio.mel_profiles import EDGE_FRAMES, MelProfile
from xtts.shared.audio.pitch import final_pitch, shimmer, track_pitch
from xtts.trainer.evaluation.evaluation_clips import EvaluationClip
from xtts.trainer.evaluation.speech_distances import (
    PATCH_FRAMES,
    RANGE_LOG_F0,
    cepstra,
    frechet_distance,
    pitch_errors,
    warped_distances,
    warping_path,
)

_MOST_VOCODED = 16


@dataclass(frozen=True, kw_only=True)
class SentenceFigures:
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
    """Root mean square difference of ln F0 from its recording, over the pairs of frames that are voiced in both."""
    voicing_error: float
    """Share of frame pairs that are voiced in only one of speech and recording."""
    shimmer: float | None
    """Roughness of the speech itself, not a difference."""
    question: bool
    final_semitones: float | None
    """`final_pitch` of the speech itself."""


@dataclass(frozen=True, kw_only=True)
class Figures:
    """Means over sentences; `frechet_distance` is of all together."""

    relative_mcd: float
    frechet_distance: float
    """Fréchet distance of all sentences to their recordings."""
    log_f0_error: float
    voicing_error: float
    shimmer: float | None
    """None without voiced sentences."""
    duration_error: float
    mcd_db: float
    semitones_of_questions: float | None
    """Mean of `final_semitones`; None without questions."""
    semitones_of_statements: float | None


class Recordings:
    """Recordings to compare speech of their sentences with."""

    def __init__(self, clips: Sequence[EvaluationClip], own: Sequence[int], profile: MelProfile) -> None:
        """clips: R, of at least two sentences; own: positions of the N clips whose sentences are spoken."""
        self._clips, self._own, self._profile = clips, own, profile
        self._mels = [without_edges(clip.mel) for clip in clips]
        self._cepstra = [cepstra(mel) for mel in self._mels]
        distances = np.array([warped_distances(self._cepstra[i], self._cepstra) for i in own])
        # Another reading of the same sentence does not count as a wrong recording.
        same = [[clip.ids == clips[i].ids for clip in clips] for i in own]
        # Above zero, since two recordings may be identical.
        self._nearest_wrong = np.maximum(np.where(same, np.inf, distances).min(axis=1), 1e-6)
        self._pitch_tracks = [self._pitch_and_shimmer(self._mels[i])[0] for i in own]

    def _pitch_and_shimmer(self, mel: np.ndarray) -> tuple[np.ndarray, float | None]:
        """(F0 float32[T] in Hz, shimmer) of a vocoded mel."""
        samples = reconstruct(mel, self._profile)
        hertz = track_pitch(samples, self._profile, len(mel))
        return hertz, shimmer(samples, hertz, self._profile)

    def compare(
        self, spoken: Sequence[np.ndarray], frames: Sequence[int], rows: Sequence[int] | None = None
    ) -> tuple[Figures, list[SentenceFigures]]:
        """Compare spoken sentences, log-mels [T, M], with their recordings: (figures of all, figures of each).

        frames: length of each before any was cut off; rows: which of the N sentences they are, None for all. Speech and
        recording are treated alike: pitch is that of vocoded mels, everything else that of mels.
        """
        rows = range(len(self._own)) if rows is None else rows
        mels, sentences = [without_edges(mel) for mel in spoken], []
        for row, mel, length in zip(rows, mels, frames, strict=True):
            position = self._own[row]
            recording, query = self._mels[position], cepstra(mel)
            (distance,) = warped_distances(query, [self._cepstra[position]])
            hertz, roughness = self._pitch_and_shimmer(mel)
            path = warping_path(query, self._cepstra[position])
            log_f0_error, voicing_error = pitch_errors(hertz, self._pitch_tracks[row], path)
            sentences.append(
                SentenceFigures(
                    clip_id=self._clips[position].clip_id,
                    mcd_db=float(distance),
                    relative_mcd=float(distance / self._nearest_wrong[row]),
                    duration_error=abs(length - len(self._clips[position].mel)) / len(recording),
                    log_f0_error=log_f0_error,
                    voicing_error=voicing_error,
                    shimmer=roughness,
                    question=self._clips[position].question,
                    final_semitones=final_pitch(hertz, self._profile.seconds(1)),
                )
            )
        recorded = [self._mels[self._own[row]] for row in rows]
        return mean_figures(sentences, frechet_distance(mels, recorded)), sentences

    def vocoded(self) -> tuple[Figures, list[SentenceFigures]]:
        """Compare some of the recordings with themselves after the vocoder: its loss differs little between clips."""
        rows = spread(len(self._own), _MOST_VOCODED)
        recorded = [self._clips[self._own[row]].mel for row in rows]
        mels = [log_mel(reconstruct(mel, self._profile), self._profile) for mel in recorded]
        return self.compare(mels, [len(mel) for mel in mels], rows)

    def frechet_distance(self, clips: Sequence[EvaluationClip]) -> float:
        """Fréchet distance of other recordings: what real speech of other sentences reaches."""
        return frechet_distance([without_edges(clip.mel) for clip in clips], [self._mels[i] for i in self._own])


def without_edges(mel: np.ndarray) -> np.ndarray:
    """Cut off the silent edges of a clip, leaving at least a patch of frames: [T, M] -> [T', M]."""
    return mel[EDGE_FRAMES : max(len(mel) - EDGE_FRAMES, EDGE_FRAMES + PATCH_FRAMES)]


def spread(clips: int, limit: int) -> list[int]:
    """Choose at most `limit` positions, evenly spaced over `clips`."""
    count = min(clips, limit)
    return [i * clips // count for i in range(count)]


def mean_figures(sentences: Sequence[SentenceFigures], frechet_distance: float) -> Figures:
    """Average the figures of at least one sentence; frechet_distance: of all together.

    The log-F0 error is of the sentences that have voiced pairs; without any it is the whole range of voices, not 0.
    """
    names = ("relative_mcd", "log_f0_error", "voicing_error", "shimmer", "duration_error", "mcd_db")
    columns = {name: [getattr(sentence, name) for sentence in sentences] for name in names}
    columns = {name: [value for value in column if value is not None] for name, column in columns.items()}
    columns["log_f0_error"] = columns["log_f0_error"] or [RANGE_LOG_F0]
    for kind, asked in (("questions", True), ("statements", False)):
        of_kind = [sentence.final_semitones for sentence in sentences if sentence.question == asked]
        columns[f"semitones_of_{kind}"] = [value for value in of_kind if value is not None]
    means = {name: float(np.mean(column)) if column else None for name, column in columns.items()}
    return Figures(frechet_distance=frechet_distance, **means)  # type: ignore[arg-type]
