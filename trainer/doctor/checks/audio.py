"""Caches without mels: the trainer's mels against those of stage 1, on some clips."""

import heapq

import numpy as np
import tensorflow as tf

from xtts.shared.audio.decode import AudioProblem, read_recording
from xtts.shared.audio.mel import MEL_TOLERANCE
from xtts.shared.audio.mel import log_mel as reference_mel
from xtts.shared.cache.cache_spec import CacheSpec
from xtts.shared.cache.clip_index import Kept, iter_index
from xtts.trainer.data.audio_mel import log_mel, reflected_samples
from xtts.trainer.doctor.finding import Fact, Finding, Result
from xtts.trainer.doctor.subject import Subject

_COMPARED = 16
"""Clips."""


def mel_parity(subject: Subject) -> Result:
    """The largest difference of the two mels in log-mel, over some clips, and how many could not be read."""
    kept = (row for row in iter_index(subject.cache / subject.spec.index_file) if isinstance(row, Kept))
    rows = heapq.nsmallest(_COMPARED, kept, key=lambda row: row.written.record_sha256)
    found = [_difference(row, subject.spec) for row in rows]
    known = [difference for difference in found if difference is not None]
    worst, unread = max(known, default=0.0), len(found) - len(known)
    fact = Fact(
        name="mel parity", value={"largest_difference": worst, "clips": len(found), "unread": unread},
        text=f"the mels of {len(known)} clips differ from stage 1's by at most {worst:.1e}; {unread} could not be read",
    )  # fmt: skip
    if worst <= MEL_TOLERANCE and not unread:
        return [fact], []
    what = f"{unread} of {len(found)} clips cannot be read" if unread else f"mels differ from stage 1's by {worst:.1e}"
    finding = Finding(
        name="other-audio",
        section="data",
        what=what,
        cause="recordings changed or went away since they were indexed" if unread else "this TensorFlow's FFT",
        fix="put the recordings back" if unread else "build a cache with mels: without --index-only",
    )
    return [fact], [finding]


def _difference(row: Kept, spec: CacheSpec) -> float | None:
    """Of one clip in log-mel; None where its audio is not what was indexed."""
    profile = spec.mel_profile
    try:
        recording = read_recording(spec.audio_file(row.clip.corpus, row.clip.source))
    except (OSError, AudioProblem):
        return None
    if profile.frames(len(recording.samples)) != row.audio.mel_length or recording.samples.dtype != np.int16:
        return None
    padded = np.pad(recording.samples[:, 0], profile.padding_samples, mode="reflect")
    mel = log_mel(tf.constant(padded[: reflected_samples(profile, row.audio.mel_length)]), profile).numpy()
    return float(np.abs(mel - reference_mel(recording.mono, profile)).max())
