"""Checking a cache against the corpus it was made of, and its features against a second computation."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from xtts.precompute.build.cached_mels import StoredMel, StoredMels
from xtts.precompute.build.extract import extract_mel
from xtts.precompute.build.scan import file_digest, same_file, start_row
from xtts.precompute.build.survey import Request, make_request
from xtts.precompute.check.verify import Finding
from xtts.precompute.corpus.front_end import FrontEnd
from xtts.precompute.workers.pool import WorkerPool
from xtts.shared.audio.decode import AudioProblem
from xtts.shared.cache.cache_spec import INDEX_FILE, CacheSpec, load_spec, shard_places
from xtts.shared.cache.clip_index import IndexRow, read_index
from xtts.shared.config import Config
from xtts.shared.config_files import validate_config
from xtts.shared.errors import LockstepError, build_command

_DEEP_CHUNK = 16
_TOLERANCE = 0.02
"""In log-mel: two steps of float16 at the quiet end, which another FFT library may cause; a real fault is larger."""


def cache_request(cache: Path, spec: CacheSpec, data: Path, *, workers: int, limit: int | None = None) -> Request:
    """The request that would build this cache again."""
    settings = [("the default size", {"model": {"size": "tiny"}}), (str(cache), dict(spec.features))]
    config: Config = validate_config(settings)
    request = make_request(data, cache, config, workers=workers, limit=limit)
    front_end = replace(request.front_end, speakers=tuple(spec.speakers))
    return replace(request, front_end=front_end)


def check_corpus(cache: Path, request: Request) -> list[Finding]:
    """Every clip that was changed, added or removed since the cache was built."""
    known = {row.id: row for row in read_index(cache / INDEX_FILE) if row.reason != "duplicate id"}
    findings: list[Finding] = []
    for clip in request.corpus.clips:
        if clip.reason != "duplicate id":
            row = start_row(clip, request.front_end)
            findings += _differences(row, known.pop(clip.id, None), request.front_end)
    findings += [_finding(row, "in the cache", "removed from the corpus") for row in known.values()]
    return [replace(finding, fix=build_command(cache)) for finding in findings]


def _differences(row: IndexRow, known: IndexRow | None, front_end: FrontEnd) -> Iterator[Finding]:
    if known is None:
        yield _finding(row, "added to the corpus", "a clip of the cache")
        return
    if row.text_sha256 != known.text_sha256:
        yield _finding(row, "transcript changed", f"{known.text[:60]!r}")
    if row.speaker != known.speaker:
        yield _finding(row, f"speaker {row.speaker!r}", f"{known.speaker!r}")
    if not same_file(row, known):
        now = file_digest(row, front_end) if known.audio_sha256 else None
        if now is None or now != known.audio_sha256:
            found = "audio missing" if row.source_bytes is None else "audio changed"
            yield _finding(row, found, "the audio of the cache")


def _finding(row: IndexRow, found: str, expected: str) -> Finding:
    return Finding(file=row.source or "", where=f"{row.source} ({row.id})", found=found, expected=expected)


@dataclass(frozen=True, kw_only=True)
class _Deep:
    """A clip to compute again, and where its features lie."""

    row: IndexRow
    stored: StoredMel


def check_features(cache: Path, request: Request, *, clips: int | None) -> list[Finding]:
    """Compute features again and compare: of all clips, or of some, chosen by the digest of their records."""
    files = shard_places(load_spec(cache))
    kept = [row for row in read_index(cache / INDEX_FILE) if row.position is not None]
    kept.sort(key=lambda row: row.record_sha256 or "")
    jobs = [
        _Deep(
            row=row,
            stored=StoredMel(
                path=(cache / files[row.split, row.bucket, row.shard]).absolute(), position=row.position or 0,
                audio_sha256=None, mel_sum=None, mel_square_sum=None,
            ),
        )
        for row in kept[:clips]
    ]  # fmt: skip
    chunks = (jobs[i : i + _DEEP_CHUNK] for i in range(0, len(jobs), _DEEP_CHUNK))
    with WorkerPool(request.workers) as pool:
        found = [finding for part in pool.run(partial(_compare, request.front_end), chunks) for finding in part]
    return sorted(found, key=lambda finding: finding.where)


def _compare(front_end: FrontEnd, jobs: list[_Deep]) -> list[Finding]:
    mels = StoredMels(mel_dtype=front_end.mel_dtype, mel_channels=front_end.profile.mel_channels)
    return [finding for job in jobs for finding in _compare_clip(job, mels, front_end)]


def _compare_clip(job: _Deep, mels: StoredMels, front_end: FrontEnd) -> Iterator[Finding]:
    row, path = job.row, job.stored.path
    about: dict[str, Any] = {"file": "/".join(path.parts[-3:]), "fix": build_command(path.parents[2], fresh=True)}
    about["where"] = f"{about['file']} record {row.position} ({row.id})"
    try:
        data = front_end.path(row.source or "").read_bytes()
        if hashlib.sha256(data).hexdigest() != row.audio_sha256:
            return  # `check_corpus` says so
        mel, stored = extract_mel(data, row, front_end), mels.read_record(job.stored, row.id)
    except (OSError, AudioProblem, LockstepError) as error:
        yield Finding(**about, found=f"cannot be compared: {error}")
        return
    error_of_mel = np.abs(mel.astype(np.float32) - stored.mel[: stored.mel_length].astype(np.float32))
    if error_of_mel.max() > _TOLERANCE:
        frame, channel = np.unravel_index(int(error_of_mel.argmax()), error_of_mel.shape)
        found = f"mel differs by {error_of_mel.max():.3f} at frame {frame}, channel {channel}"
        yield Finding(**about, found=found, expected=f"at most {_TOLERANCE}")
    if front_end.tokenizer.encode(row.text).ids != stored.tokens[: stored.token_length].tolist():
        yield Finding(**about, found="other tokens than its transcript gives")
