"""Check a finished cache against its own `cache.json` and index: every byte, every record, every clip."""

import hashlib
import mmap
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from xtts.shared.cache.cache_spec import SPEC_FILE, Bucket, CacheSpec, Shard, load_spec, shard_files
from xtts.shared.cache.clip_index import IndexRow, kept_rows, read_index
from xtts.shared.cache.quick_check import file_sha256, shard_problem
from xtts.shared.cache.records import CorruptRecord, CropAudio, Record, parse_example, unframe
from xtts.shared.errors import LockstepError, repair_command
from xtts.shared.system.folder_lock import ReadLock


@dataclass(frozen=True, kw_only=True)
class CacheFinding:
    """A problem of a cache: its file and location, what was found and expected, and what fixes it."""

    file: str
    """The file of the cache or of the corpus."""
    location: str
    found: str
    expected: str = ""
    fix: str = ""

    def __str__(self) -> str:
        expected = f", expected {self.expected}" if self.expected else ""
        return f"{self.location}: {self.found}{expected}; {self.fix}"


def check_cache(cache: Path, *, threads: int) -> list[CacheFinding]:
    """Find all problems of a cache, in the order of its files; raises `LockstepError` if there is no cache.

    Shards are read by `threads` threads of this process: hashing lets them all run.

    Hashing takes most of the time. Records are hashed only if their shard or the index differs from what was written:
    else the two agree on the digest of every record.
    """
    with ReadLock(cache):
        findings = _check_all(cache, threads)
    return [replace(finding, fix=repair_command(cache)) for finding in findings]


def _check_all(cache: Path, threads: int) -> list[CacheFinding]:
    spec = load_spec(cache)
    findings = list(_check_small_files(cache, spec))
    try:
        rows = read_index(cache / spec.index_file)
    except LockstepError as error:
        return [*findings, _of_file(spec.index_file, error.found)]
    findings += _check_index(spec, rows)
    rows_of_shard, every_digest = _rows_by_shard(spec, rows), any(f.file == spec.index_file for f in findings)
    check = partial(_check_shard, cache, spec, every_digest)
    pairs = [(bucket, shard) for bucket in spec.buckets for shard in (*bucket.train, *bucket.validation)]
    tasks = [(*pair, rows_of_shard.get(pair[1].file, [])) for pair in pairs]
    with ThreadPoolExecutor(threads) as executor:
        return findings + [finding for own in executor.map(check, tasks) for finding in own]


def _rows_by_shard(spec: CacheSpec, rows: list[IndexRow]) -> dict[str, list[IndexRow]]:
    """Shard file to its rows by position; rows of shards that the cache does not have are under ""."""
    files = shard_files(spec)
    shards: dict[str, list[IndexRow]] = defaultdict(list)
    for row in kept_rows(rows):
        shards[files.get(row.shard_id, "")].append(row)
    return {file: sorted(members, key=lambda row: row.position) for file, members in shards.items()}


def _of_file(name: str, found: str, expected: str = "") -> CacheFinding:
    return CacheFinding(file=name, location=name, found=found, expected=expected)


def _check_small_files(cache: Path, spec: CacheSpec) -> Iterator[CacheFinding]:
    for name, digest in spec.small_files.items():
        if not (cache / name).is_file():
            yield _of_file(name, "missing", "a file of the cache")
        elif file_sha256(cache / name) != digest:
            yield _of_file(name, "content differs from what was written (sha256)")


def _check_index(spec: CacheSpec, rows: list[IndexRow]) -> Iterator[CacheFinding]:
    name, kept = spec.index_file, len(kept_rows(rows))
    records = sum(shard.records for shard in spec.shards())
    stated = (("rows", len(rows), spec.index_rows), ("kept clips", kept, spec.statistics.clips))
    for what, count, expected in (*stated, ("kept clips", kept, records)):
        if count != expected:
            yield _of_file(name, f"{count} {what}", f"{expected} as in {SPEC_FILE}")
    for row in _rows_by_shard(spec, rows).get("", []):
        location = f"{name} ({row.clip.id})"
        yield CacheFinding(file=name, location=location, found="names a shard that the cache does not have")


def _check_shard(
    cache: Path, spec: CacheSpec, every_digest: bool, task: tuple[Bucket, Shard, list[IndexRow]]
) -> list[CacheFinding]:
    bucket, shard, rows = task
    path = cache / shard.file
    problem = shard_problem(cache, shard)
    findings = [_of_file(shard.file, *problem)] if problem else []
    if not path.is_file() or path.stat().st_size == 0:
        return findings
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        with memoryview(mapped) as data:
            sound = hashlib.sha256(data).hexdigest() == shard.sha256
            records = list(_check_records(spec, bucket, shard, data, rows, digests=every_digest or not sound))
    if not sound and not records:
        records = [_of_file(shard.file, "bytes differ from what was written (sha256)")]
    return findings + records


def _check_records(
    spec: CacheSpec, bucket: Bucket, shard: Shard, data: memoryview, rows: list[IndexRow], *, digests: bool
) -> Iterator[CacheFinding]:
    count = 0
    try:
        for payload in unframe(data):
            row = rows[count] if count < len(rows) else None
            for found, expected in _record_findings(spec, bucket, payload, row, digest=digests):
                yield CacheFinding(
                    file=shard.file, location=_location(shard, count, row), found=found, expected=expected
                )
            count += 1
    except CorruptRecord as error:
        location = _location(shard, count, rows[count] if count < len(rows) else None)
        yield CacheFinding(file=shard.file, location=location, found=str(error))
        return
    for what, records in ((SPEC_FILE, shard.records), (spec.index_file, len(rows))):
        if count != records:
            yield _of_file(shard.file, f"{count} records", f"{records} as in {what}")


def _location(shard: Shard, position: int, row: IndexRow | None) -> str:
    return f"{shard.file} record {position} ({row.clip.id if row else 'not in the index'})"


def _record_findings(
    spec: CacheSpec, bucket: Bucket, payload: memoryview, row: IndexRow | None, *, digest: bool
) -> Iterator[tuple[str, str]]:
    """Yield (found, expected) for every problem of a record."""
    try:
        record = parse_example(payload, mel_dtype=spec.mel_dtype, mel_channels=spec.mel_channels)
    except CorruptRecord as error:
        yield str(error), "a record as cache.json describes"
        return
    yield from _record_problems(spec, bucket, record)
    if row is None:
        return
    values = (record.clip_id, record.token_length, record.mel_length)
    expected = (row.clip.id, row.token_length, row.mel_length)
    if values != expected:
        yield f"(id, tokens, frames) {values}", f"{expected} as in the index"
    elif digest and hashlib.sha256(payload).hexdigest() != row.record_sha256:
        yield "content differs from the index (record_sha256)", "the bytes that were written"


def _record_problems(spec: CacheSpec, bucket: Bucket, record: Record) -> Iterator[tuple[str, str]]:
    tokens, frames = len(record.tokens), len(record.mel)
    if record.crop is not None or spec.holds_crops:
        yield from _crop_problems(spec, bucket, record.crop)
    padded_frames, padded_tokens = (
        (bucket.frames, bucket.tokens) if spec.fixed_length else (record.mel_length, record.token_length)
    )
    most_frames, most_tokens = min(frames, bucket.frames), min(tokens, bucket.tokens)
    length, least = record.token_length, 0 if spec.holds_crops else 1
    first_id, last_id, last_speaker = record.tokens.min(), record.tokens.max(), max(1, len(spec.speakers)) - 1
    silence, most_id = np.asarray(spec.mel_profile.silence, record.mel.dtype), spec.vocabulary - 1
    checks = (
        (frames == padded_frames, f"mel has {frames} frames", f"{padded_frames}"),
        (tokens == padded_tokens, f"{tokens} tokens", f"{padded_tokens}"),
        (0 < record.mel_length <= most_frames, f"mel_length {record.mel_length}", f"1 to {most_frames}"),
        (least <= length <= most_tokens, f"token_length {length}", f"{least} to {most_tokens}"),
        (0 <= first_id <= last_id <= most_id, f"token ids from {first_id} to {last_id}", f"0 to {most_id}"),
        (not record.tokens[length:].any(), "tokens padded with nonzero ids", "0"),
        ((record.mel[record.mel_length :] == silence).all(), "mel padded with wrong values", f"{float(silence)}"),
        (np.isfinite(record.mel).all(), "a mel whose values are not all finite", "finite ones"),
        (0 <= record.speaker <= last_speaker, f"speaker {record.speaker}", f"0 to {last_speaker}"),
    )
    yield from ((found, expected) for holds, found, expected in checks if not holds)


def _crop_problems(spec: CacheSpec, bucket: Bucket, crop: CropAudio | None) -> Iterator[tuple[str, str]]:
    if crop is None or not spec.holds_crops:
        yield "holds samples" if crop else "holds no samples", "the opposite, as in cache.json"
        return
    expected = (bucket.frames * spec.mel_profile.hop_samples, bucket.frames, bucket.frames)
    lengths = (len(crop.waveform), len(crop.log_hertz), len(crop.voiced))
    if lengths != expected:
        yield f"(samples, pitch, voicing) have lengths {lengths}", f"{expected}"
