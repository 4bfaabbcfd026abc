"""Read records of a finished cache without TensorFlow, and compute the mels of records that name audio."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from xtts.shared.audio.decode import AudioProblem, read_recording
from xtts.shared.audio.mel import clip_mel
from xtts.shared.cache.cache_spec import CacheSpec
from xtts.shared.cache.records import CorruptRecord, Record, parse_example, unframe


def read_shard(path: Path, spec: CacheSpec) -> Iterator[Record]:
    """Yield the records of a shard, in order.

    Raises OSError if the file cannot be read, CorruptRecord at the first record that is not what was written.
    """
    for payload in unframe(memoryview(path.read_bytes())):
        yield parse_example(payload, mel_dtype=spec.mel_dtype, mel_channels=spec.mel_channels)


def with_mel(record: Record, spec: CacheSpec) -> Record:
    """The record with the mel of the audio that it names, without padding; a record with a mel stays as it is.

    Raises `CorruptRecord` if the audio is not what was indexed.
    """
    if record.audio is None:
        return record
    path, profile = spec.audio_file(record.audio.corpus, record.audio.source), spec.mel_profile
    try:
        recording = read_recording(path)
    except (OSError, AudioProblem) as error:
        raise CorruptRecord(f"{path} cannot be read ({error})") from None
    rate, samples = recording.header.rate, len(recording.samples)
    if (rate, samples) != (profile.sample_rate, record.audio.samples):
        raise CorruptRecord(f"{path} has {samples} samples at {rate} Hz, not the {record.audio.samples} indexed")
    return replace(record, mel=clip_mel(recording.mono, profile).astype(spec.mel_dtype))
