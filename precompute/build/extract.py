"""The second pass: write one shard, from audio files to framed records (runs in a worker)."""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from xtts.precompute.build.cached_mels import StoredMel, StoredMels
from xtts.precompute.corpus.front_end import FrontEnd
from xtts.shared.audio.decode import AudioProblem
from xtts.shared.audio.mel import log_mel
from xtts.shared.cache.bucket_shapes import Shape
from xtts.shared.cache.clip_index import REJECTED, IndexRow
from xtts.shared.cache.records import Record, frame
from xtts.shared.errors import LockstepError


@dataclass(frozen=True, kw_only=True)
class ShardTask:
    """Write these clips, padded to this shape, to this file."""

    file: str
    """The shard's path inside the cache."""
    path: Path
    """Where to write for now."""
    shape: Shape
    rows: list[IndexRow]
    stored: Mapping[str, StoredMel]
    """Clips whose mel an earlier cache holds."""


@dataclass(frozen=True, kw_only=True)
class ShardResult:
    """What was written, and the finished rows."""

    file: str
    path: Path
    rows: list[IndexRow]
    records: int
    bytes: int
    sha256: str


def write_shard(front_end: FrontEnd, task: ShardTask) -> ShardResult:
    """Extract and write clip by clip, so that memory does not grow with the shard; the caller syncs the file."""
    digest, size, records, rows = hashlib.sha256(), 0, 0, []
    mels = StoredMels(mel_dtype=front_end.mel_dtype, mel_channels=front_end.profile.mel_channels)
    with task.path.open("wb") as out:
        for row in task.rows:
            try:
                done, mel = mel_of(row, task.stored.get(row.id), mels, front_end)
            except AudioProblem as problem:
                rows.append(replace(row, status=REJECTED, reason=problem.reason, detail=problem.detail))
                continue
            payload = _record(row, mel, task.shape, front_end).to_example()
            framed = frame(payload)
            digest.update(framed)
            out.write(framed)
            rows.append(replace(done, position=records, record_sha256=hashlib.sha256(payload).hexdigest()))
            size, records = size + len(framed), records + 1
    return ShardResult(
        file=task.file, path=task.path, rows=rows, records=records, bytes=size, sha256=digest.hexdigest()
    )


def mel_of(
    row: IndexRow, stored: StoredMel | None, mels: StoredMels, front_end: FrontEnd
) -> tuple[IndexRow, np.ndarray]:
    """The mel as it is stored, and the row with the audio's figures."""
    if stored is not None:
        mel_sum, square_sum, audio_sha256 = stored.mel_sum, stored.mel_square_sum, stored.audio_sha256
        mel = mels.read(stored, row.id)
        return replace(row, audio_sha256=audio_sha256, mel_sum=mel_sum, mel_square_sum=square_sum), mel
    data = _read_source(row, front_end)
    mel = extract_mel(data, row, front_end)
    mel_sum, square_sum = mel_sums(mel)
    if not math.isfinite(square_sum):
        raise AudioProblem("non-finite mel", "the audio holds samples that are not numbers")
    audio_sha256 = hashlib.sha256(data).hexdigest()
    return replace(row, audio_sha256=audio_sha256, mel_sum=mel_sum, mel_square_sum=square_sum), mel


def mel_sums(mel: np.ndarray) -> tuple[float, float]:
    """Sum and sum of squares of a stored mel without padding, in float64."""
    exact = mel.astype(np.float64).ravel()
    return float(exact.sum()), float(np.dot(exact, exact))


def extract_mel(data: bytes, row: IndexRow, front_end: FrontEnd) -> np.ndarray:
    """Decode a file and compute its mel in the stored type; raises `AudioProblem`."""
    samples = front_end.samples(data)
    if front_end.profile.frames(len(samples)) != row.mel_length:
        raise AudioProblem("unreadable audio", f"{len(samples)} samples decoded, the header says otherwise")
    with np.errstate(all="ignore"):  # samples that are not numbers are found by the caller
        return log_mel(samples, front_end.profile).astype(front_end.mel_dtype)


def _read_source(row: IndexRow, front_end: FrontEnd) -> bytes:
    path = front_end.path(row.source or "")
    try:
        data = path.read_bytes()
        changed = path.stat().st_mtime_ns != row.source_mtime_ns or len(data) != row.source_bytes
    except FileNotFoundError:
        changed = True
    if changed:
        fix = "let the corpus rest and run the same command again"
        raise LockstepError(str(path), found="changed while the cache was being built", fix=fix, exit_code=1)
    return data


def _record(row: IndexRow, mel: np.ndarray, shape: Shape, front_end: FrontEnd) -> Record:
    ids, profile = front_end.tokenizer.encode(row.text).ids, front_end.profile
    most_frames, most_tokens = (shape.frames, shape.tokens) if front_end.fixed_length else (len(mel), len(ids))
    padded = np.full((most_frames, profile.mel_channels), profile.silence, mel.dtype)
    padded[: len(mel)] = mel
    tokens = np.zeros(most_tokens, np.int64)
    tokens[: len(ids)] = ids
    return Record(
        clip_id=row.id,
        tokens=tokens,
        mel=padded,
        token_length=len(ids),
        mel_length=len(mel),
        speaker=front_end.speaker_id(row.speaker),
    )
