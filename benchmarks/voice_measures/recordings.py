"""The recordings of a corpus of voices: references of so many seconds, and others that stand for each voice."""

import itertools
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import soundfile

from xtts.precompute.corpus.listing import read_corpus
from xtts.precompute.sample.sentences import sentences
from xtts.shared.audio.mel import log_mel
from xtts.shared.audio.mel_profiles import MelProfile


def samples_by_voice(corpus: Path, most: int) -> dict[str, list[np.ndarray]]:
    """The first `most` recordings of every speaker of a sample corpus, float32[S] each."""
    found: dict[str, list[np.ndarray]] = {}
    for clip in read_corpus(corpus).clips:
        recordings = found.setdefault(str(clip.speaker), [])
        if len(recordings) < most:
            recordings.append(soundfile.read(corpus / "wavs" / f"{clip.id}.wav", dtype="float32")[0])
    return found


def references(recordings: Iterable[np.ndarray], seconds: float, profile: MelProfile) -> list[np.ndarray]:
    """Log-mels float32[T, M] of `seconds` each: the recordings one after another, cut evenly; the rest is left out."""
    joined, length = np.concatenate([*recordings]), round(seconds * profile.sample_rate)
    starts = range(0, len(joined) - length + 1, length)
    return [log_mel(joined[start : start + length], profile) for start in starts]


def new_sentences(corpora: Iterable[Path], count: int, *, seed: int, max_seconds: float) -> list[str]:
    """Normalised sentences that are in none of the corpora."""
    known = {clip.text for corpus in corpora for clip in read_corpus(corpus).clips}
    texts = (sentence.normalised for sentence in sentences(seed, max_seconds))
    return [*itertools.islice((text for text in texts if text not in known), count)]
