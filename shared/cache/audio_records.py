"""Records that name audio instead of holding a mel, and their mels without TensorFlow."""

from dataclasses import replace

import numpy as np

from xtts.shared.audio.decode import AudioProblem, read_recording
from xtts.shared.audio.mel import log_mel
from xtts.shared.cache.cache_spec import CacheSpec
from xtts.shared.cache.records import CorruptRecord, Record


def with_mel(record: Record, spec: CacheSpec, frames: int | None = None) -> Record:
    """The record with the mel of the audio that it names, as a cache with mels holds it; one with a mel as it is.

    frames: T to pad to, none without. Raises `CorruptRecord` where the audio is not what was indexed.
    """
    if record.audio is None:
        return record
    path, profile = spec.audio_file(record.audio.corpus, record.audio.source), spec.mel_profile
    try:
        recording = read_recording(path)
    except (OSError, AudioProblem) as error:
        raise CorruptRecord(f"{path} cannot be read ({error})") from None
    found = (recording.header.rate, len(recording.samples))
    if found != (profile.sample_rate, record.audio.samples):
        raise CorruptRecord(f"{path} has {found[1]} samples at {found[0]} Hz, not the {record.audio.samples} indexed")
    mel = log_mel(recording.mono, profile)[: record.mel_length].astype(spec.mel_dtype)
    padded = np.full((max(frames or 0, len(mel)), profile.mel_channels), profile.silence, mel.dtype)
    padded[: len(mel)] = mel
    return replace(record, mel=padded)
