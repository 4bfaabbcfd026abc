"""Caches built in this process, and where their files lie, whose names carry digests: for tests of both stages."""

import hashlib
import io
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from xtts.precompute.pipeline.build_cache import BuildReport, run_build
from xtts.precompute.pipeline.build_request import make_request
from xtts.precompute.pipeline.index import write_tables
from xtts.precompute.workers.open_pool import open_pool
from xtts.precompute.workers.worker_pool import Progress, WorkerPool
from xtts.shared.cache.cache_spec import INDEX_FILE, load_spec, spec_bytes, with_digest
from xtts.shared.cache.clip_index import IndexRow, table_of
from xtts.shared.config import Config


def build_cache(
    data: object, cache: object, config: Config, progress: Progress | None = None, pool: WorkerPool | None = None,
    *, workers: int = 0, engine: str = "local", **options: object,
) -> BuildReport:
    """Build a cache without processes, silently."""
    pool = pool or open_pool(workers, engine)
    return run_build(make_request(data, cache, config, **options), pool, progress or Progress())


def index_path(cache: Path) -> Path:
    """The clip index."""
    return cache / load_spec(cache).index_file


def tokenizer_path(cache: Path) -> Path:
    """The tokenizer."""
    return cache / load_spec(cache).tokenizer_file


def replace_index(cache: Path, data: bytes) -> None:
    """Make `data` the clip index of a cache that is sound."""
    digest = hashlib.sha256(data).hexdigest()
    index_path(cache).unlink()
    fields = {"index_sha256": digest, "index_file": with_digest(INDEX_FILE, digest)}
    spec = load_spec(cache).model_copy(update=fields)
    (cache / spec.index_file).write_bytes(data)
    (cache / "cache.json").write_bytes(spec_bytes(spec))


def index_bytes(rows: Sequence[IndexRow]) -> bytes:
    """The bytes that a build would write for these rows, in one go."""
    sink = io.BytesIO()
    write_tables(sink, (table_of(list(members)) for _, members in groupby(rows, key=_bucket)))
    return sink.getvalue()


def _bucket(row: IndexRow) -> tuple[str, int] | None:
    return (row.split, row.bucket) if row.is_kept else None
