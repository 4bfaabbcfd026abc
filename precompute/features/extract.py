"""The second pass: write one shard, from audio files to framed records (runs in a worker)."""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from xtts.precompute.corpus.clip_audio import check_unchanged, read_audio
from xtts.precompute.corpus.feature_extractor import FeatureExtractor
from xtts.precompute.features.audio_names import audio_name
from xtts.precompute.features.cached_mels import StoredClips, StoredMel, StoredMels
from xtts.precompute.features.finished_shard import Finished, rows_beside, write_rows
from xtts.precompute.features.mel_check import check_mel
from xtts.precompute.features.tables import unpack
from xtts.precompute.workers.shared_folders import attempt_path
from xtts.shared.audio.decode import AudioProblem, Recording
from xtts.shared.audio.mel import clip_mel, log_mel
from xtts.shared.audio.mel_profiles import MelProfile
from xtts.shared.audio.pitch import track_pitch
from xtts.shared.audio.signal_quality import SignalQuality
from xtts.shared.cache.bucket_shapes import BucketShape
from xtts.shared.cache.cache_spec import Shard, with_digest
from xtts.shared.cache.clip_index import KEPT, IndexRow, ShardPlace, rows_of
from xtts.shared.cache.records import FRAME_BYTES, CropAudio, Record, frame
from xtts.shared.errors import LockstepError
from xtts.shared.system import atomic_files

_UNVOICED_LOG_HERTZ = 5.0
"""The pitch of a crop without a voiced frame: 148 Hz."""
Sums = tuple[str, float, float]
"""Digest of a clip's audio, sum and sum of squares of its mel."""


@dataclass(frozen=True, kw_only=True)
class ShardTask:
    """Write these clips, padded to this shape, to this file."""

    file: str
    """The shard's path inside the cache."""
    path: Path
    """Where to write for now: in this folder, each attempt under a name of its own beside this one."""
    settings: str
    """Digest of all that decides the shard's bytes besides its clips."""
    place: ShardPlace
    shape: BucketShape
    rows: bytes
    """Its clips in order, as the scan found them: a packed table."""
    speakers: Mapping[str, int]
    """Named speakers of the clips, and their ids; a clip without one has id 0."""
    stored: StoredClips
    """Clips whose mel an earlier cache holds."""
    sync: bool
    """Sync what is written: nobody else can where workers are on other machines."""


def write_shard(extractor: FeatureExtractor, task: ShardTask) -> Path:
    """Extract and write clip by clip, so that memory does not grow with the shard; then the rows. Returns the file.

    A `LockstepError` where the folder of `task.path` is not there.
    """
    path, digest, records, rows, with_mels = attempt_path(task.path), hashlib.sha256(), 0, list[IndexRow](), 0
    clips, stored = rows_of(unpack(task.rows)), task.stored.by_place()
    if len(stored) < len(clips) and not extractor.index_only:
        check_mel(extractor)
    mels = StoredMels(mel_dtype=extractor.config.shards.mel_dtype, mel_channels=extractor.profile.mel_channels)
    frame_bytes = mels.mel_channels * np.dtype(mels.mel_dtype).itemsize
    with path.open("wb") as out:
        for place, row in enumerate(clips):
            row = replace(row, split=task.place.split, bucket=task.place.bucket, shard=task.place.shard)
            try:
                record, audio_sha256, sums, quality = _features(row, task, mels, extractor, stored.get(place))
            except AudioProblem as problem:
                rows.append(replace(row, quality=None).rejected(problem.reason, problem.detail))
                continue
            payload = record.to_example()
            framed = frame(payload)
            digest.update(framed)
            out.write(framed)
            rows.append(
                replace(
                    row, status=KEPT, position=records, record_sha256=hashlib.sha256(payload).hexdigest(),
                    audio_sha256=audio_sha256, mel_sum=sums[0], mel_square_sum=sums[1], quality=quality or row.quality,
                )
            )  # fmt: skip
            records += 1
            if record.audio is not None:
                with_mels += FRAME_BYTES + record.bytes_with_mel(task.shape.frames * frame_bytes)
        size = out.tell()
    shard = Shard(
        file=with_digest(task.file, digest.hexdigest()), records=records, bytes=size, sha256=digest.hexdigest(),
        bytes_with_mels=with_mels or size,
    )  # fmt: skip
    done = Finished(shard=shard, settings=task.settings, clips=hashlib.sha256(task.rows).hexdigest())
    write_rows(path, done, rows)
    for file in (path, rows_beside(path)) if task.sync else ():
        atomic_files.sync_file(file)
    return path


def _features(
    row: IndexRow, task: ShardTask, mels: StoredMels, extractor: FeatureExtractor, stored: StoredMel | None
) -> tuple[Record, str, tuple[float, float], SignalQuality | None]:
    """The record of a clip, the digest of its audio, its mel's sums, and what was measured if audio was decoded.

    Where records name audio, nothing is decoded.
    """
    if extractor.index_only:
        name = audio_name(row, extractor)
        none = np.empty((0, extractor.profile.mel_channels), extractor.config.shards.mel_dtype)
        record = replace(_record(row, none, task, extractor), mel=none, mel_length=row.mel_length, audio=name)
        return record, "", (0.0, 0.0), None
    if stored is not None:
        found = mels.read_record(stored.path, stored.position, row.clip.id)
        mel = found.mel[: found.mel_length]
        return _record(row, mel, task, extractor, found.crop), stored.audio_sha256, stored.sums, None
    mel, samples, audio = read_mel(row, extractor)
    sums = mel_sums(mel)
    if not math.isfinite(sums[1]):
        raise AudioProblem("non-finite mel", "the audio holds samples that are not numbers")
    crop = crop_audio(samples, task.shape.frames, extractor.profile) if extractor.config.audio.crop_frames else None
    return _record(row, mel, task, extractor, crop), audio.sha256, sums, audio.quality


def read_mel(row: IndexRow, extractor: FeatureExtractor) -> tuple[np.ndarray, np.ndarray, Recording]:
    """(mel of a clip in the stored type, its samples float32[S], the audio they are of); raises `AudioProblem`."""
    audio = _read_source(row, extractor)
    samples = extractor.samples(audio)
    return extract_mel(samples, row.mel_length, extractor), samples, audio


def sums_of_clips(extractor: FeatureExtractor, rows: bytes) -> dict[str, Sums]:
    """`Sums` of the clips of a packed table by id (runs in a worker); a `LockstepError` where one cannot be decoded."""
    found = dict[str, Sums]()
    for row in rows_of(unpack(rows)):
        try:
            mel, _, audio = read_mel(row, extractor)
        except AudioProblem as problem:
            raise LockstepError(str(extractor.path(row.clip)), found=str(problem), exit_code=1) from None
        found[row.clip.id] = (audio.sha256, *mel_sums(mel))
    return found


def measure(row: IndexRow, extractor: FeatureExtractor) -> SignalQuality | None:
    """What decoding a clip's audio shows; None where it turns out to be of no use."""
    try:
        return _read_source(row, extractor).quality
    except AudioProblem:  # writing its shard says so
        return None


def mel_sums(mel: np.ndarray) -> tuple[float, float]:
    """Sum and sum of squares of a stored mel without padding, in float64."""
    exact = mel.astype(np.float64).ravel()
    return float(exact.sum()), float(np.dot(exact, exact))


def extract_mel(samples: np.ndarray, frames: int, extractor: FeatureExtractor) -> np.ndarray:
    """The mel of a clip's samples, float32[S], in the stored type; raises `AudioProblem` where it has other frames."""
    if extractor.frames(len(samples)) != frames:
        raise AudioProblem("unreadable audio", f"{len(samples)} samples decoded, the header says otherwise")
    with np.errstate(all="ignore"):  # samples that are not numbers are found by the caller
        mel = log_mel if extractor.config.audio.crop_frames else clip_mel
        return mel(samples, extractor.profile)[:frames].astype(extractor.config.shards.mel_dtype)


def crop_audio(samples: np.ndarray, frames: int, profile: MelProfile) -> CropAudio:
    """The audio of a crop padded to T frames; samples: float32[S]."""
    whole = np.pad(samples, (0, max(0, frames * profile.hop_samples - len(samples))))[: frames * profile.hop_samples]
    hertz = track_pitch(whole, profile, frames)
    voiced = np.flatnonzero(hertz)
    log_hertz = np.full(frames, _UNVOICED_LOG_HERTZ)
    if len(voiced):
        log_hertz = np.interp(np.arange(frames), voiced, np.log(hertz[voiced]))
    return CropAudio(
        waveform=np.clip(np.round(whole * 32_768.0), -32_768, 32_767).astype(np.int16),
        log_hertz=log_hertz.astype(np.float32), voiced=(hertz > 0.0).astype(np.uint8),
    )  # fmt: skip


def _read_source(row: IndexRow, extractor: FeatureExtractor) -> Recording:
    try:
        return read_audio(extractor.audio(row.clip), row.clip)
    finally:  # whatever came of it
        check_unchanged(row, extractor)


def _record(
    row: IndexRow, mel: np.ndarray, task: ShardTask, extractor: FeatureExtractor, crop: CropAudio | None = None
) -> Record:
    profile, shape = extractor.profile, task.shape
    most_frames, most_tokens = (
        (shape.frames, shape.tokens) if extractor.config.shapes.pad_to_fixed_length else (len(mel), row.token_length)
    )
    padded = np.full((most_frames, profile.mel_channels), profile.silence, mel.dtype)
    padded[: len(mel)] = mel
    tokens = np.zeros(most_tokens, np.int64)
    tokens[: row.token_length] = np.frombuffer(row.tokens, "<u2")
    return Record(
        clip_id=row.clip.id,
        tokens=tokens,
        mel=padded,
        token_length=row.token_length,
        mel_length=len(mel),
        speaker=task.speakers.get(row.clip.speaker, 0),
        language=extractor.language_id(row.clip.language),
        crop=crop,
    )
