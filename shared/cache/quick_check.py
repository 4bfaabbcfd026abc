"""Checks before training: every file of the cache exists with its size or, in the full check, its digest."""

import hashlib
from pathlib import Path

from xtts.shared.cache.cache_spec import CacheSpec, Shard
from xtts.shared.errors import LockstepError, repair_command


def shard_problem(cache: Path, shard: Shard) -> tuple[str, str] | None:
    """Return (found, expected) for a shard's file, or None if it has the right size."""
    path = cache / shard.file
    if not path.is_file():
        return "missing", f"{shard.bytes} bytes"
    size = path.stat().st_size
    if size != shard.bytes:
        return f"{'truncated to' if size < shard.bytes else 'grown to'} {size} bytes", f"{shard.bytes} bytes"
    return None


def file_sha256(path: Path) -> str:
    """Digest of a file's content; raises `LockstepError` if it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise LockstepError(str(path), found=f"cannot be read ({error})", exit_code=1) from None


def quick_check(cache: Path, spec: CacheSpec) -> None:
    """Raise a `LockstepError` for the first file that is missing or has the wrong size; reads no features."""
    fix = repair_command(cache)
    for name in spec.small_files:
        if not (cache / name).is_file():
            raise LockstepError(str(cache / name), found="missing", fix=fix, exit_code=1)
    for shard in spec.shards():
        if problem := shard_problem(cache, shard):
            found, expected = problem
            raise LockstepError(str(cache / shard.file), found=found, expected=expected, fix=fix, exit_code=1)
