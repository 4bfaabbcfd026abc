"""How close speech is to its own recording, and whether any other recording is closer; needs only numpy.

N spoken sentences, R recordings. Distances are MCD-DTW in dB, see `warped_distances`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from xtts.trainer.evaluation.cepstral_distortion import cepstra, warped_distances


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
    nearest: str
    """Clip with the nearest recording of all."""

    @property
    def retrieved(self) -> bool:
        """Whether its own recording is the nearest."""
        return self.nearest == self.clip_id


@dataclass(frozen=True, kw_only=True)
class Figures:
    """Means over sentences."""

    mcd_db: float
    relative_mcd: float
    duration_error: float
    retrieval_at_1: float
    """Share of the sentences whose own recording is the nearest of all recordings."""


def distance_table(spoken: Sequence[np.ndarray], recordings: Sequence[np.ndarray]) -> np.ndarray:
    """MCD-DTW of every pair, float64[N, R], dB: log-mels [T, M] of each."""
    wanted = [cepstra(mel) for mel in recordings]
    # 5 ms per pair of 535 frames on a busy core; two threads took as long as one.
    return np.array([warped_distances(cepstra(mel), wanted) for mel in spoken])


def score_sentences(
    distances: np.ndarray, frames: Sequence[int], own: Sequence[int], recorded: np.ndarray, lengths: Sequence[int],
    clip_ids: Sequence[str],
) -> list[Sentence]:  # fmt: skip
    """The figures of N sentences.

    distances: float64[N, R], dB, speech to recordings, frames: N lengths of the speech, own: N indices of the own
    recording among the R, recorded: float64[N, R], dB, own recordings to all, lengths: R lengths, clip_ids: R.
    """
    sentences = []
    for row, place in enumerate(own):
        wrong = np.delete(recorded[row], place)
        sentences.append(
            Sentence(
                clip_id=clip_ids[place],
                mcd_db=float(distances[row, place]),
                # Two recordings may be identical: then nothing is nearer than the wrong one.
                relative_mcd=float(distances[row, place] / max(wrong.min(), 1e-6)),
                duration_error=abs(frames[row] - lengths[place]) / lengths[place],
                nearest=clip_ids[int(np.argmin(distances[row]))],
            )
        )
    return sentences


def best_wrong(
    own: Sequence[int], recorded: np.ndarray, lengths: Sequence[int], clip_ids: Sequence[str]
) -> list[Sentence]:
    """Figures of a system that speaks the most similar wrong sentence instead of each sentence."""
    others = recorded.copy()
    others[np.arange(len(own)), list(own)] = np.inf
    return [
        Sentence(
            clip_id=clip_ids[place],
            mcd_db=float(others[row].min()),
            relative_mcd=1.0,
            duration_error=abs(lengths[wrong] - lengths[place]) / lengths[place],
            nearest=clip_ids[wrong],
        )
        for row, (place, wrong) in enumerate(zip(own, others.argmin(axis=1).tolist(), strict=True))
    ]


def mean_figures(sentences: Sequence[Sentence]) -> Figures:
    """Means over at least one sentence."""

    def mean(values: Sequence[float]) -> float:
        return float(np.mean(values))

    return Figures(
        mcd_db=mean([sentence.mcd_db for sentence in sentences]),
        relative_mcd=mean([sentence.relative_mcd for sentence in sentences]),
        duration_error=mean([sentence.duration_error for sentence in sentences]),
        retrieval_at_1=mean([float(sentence.retrieved) for sentence in sentences]),
    )
