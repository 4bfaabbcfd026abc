"""The check before training: every file of the cache is there, inside the cache, and has its size."""

from pathlib import Path

from xtts.shared.cache_spec import INDEX_FILE, TOKENIZER_FILE, Shard, load_spec
from xtts.shared.errors import LockstepError

REPAIR = "run xtts-precompute verify --repair"


def shard_problem(cache: Path, shard: Shard) -> tuple[str, str] | None:
    """(found, expected) of a shard's file, or None when it has the right size."""
    path = cache / shard.file
    if not path.is_file():
        return "missing", f"{shard.bytes} bytes"
    if not path.resolve().is_relative_to(cache.resolve()):
        return "a link that leaves the cache", "a file of the cache"
    size = path.stat().st_size
    if size != shard.bytes:
        return f"{'truncated to' if size < shard.bytes else 'grown to'} {size} bytes", f"{shard.bytes} bytes"
    return None


def quick_check(cache: Path) -> None:
    """Raise a `LockstepError` at the first file that is missing or has another size; reads no features."""
    spec = load_spec(cache)
    for name in (INDEX_FILE, TOKENIZER_FILE):
        if not (cache / name).is_file():
            raise LockstepError(str(cache / name), found="missing", fix=REPAIR, exit_code=1)
    for bucket in spec.buckets:
        for shard in (*bucket.train, *bucket.validation):
            problem = shard_problem(cache, shard)
            if problem:
                found, expected = problem
                raise LockstepError(str(cache / shard.file), found=found, expected=expected, fix=REPAIR, exit_code=1)
