"""A shard that exists, and the rows beside it that say so: its worker writes both, staging moves them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from xtts.precompute.features.tables import pack, read_table
from xtts.shared.cache.cache_spec import Shard
from xtts.shared.cache.clip_index import IndexRow, index_schema, table_of

_FACTS = b"shard"
"""Key of the metadata of the rows' Arrow file."""


@dataclass(frozen=True, kw_only=True)
class Finished:
    """A shard that exists, with what decided its bytes."""

    shard: Shard
    """As `cache.json` will list it."""
    settings: str
    """Digest of all that decides the shard's bytes besides its clips."""
    clips: str
    """Digest of the packed rows of its clips, as the scan found them."""


def rows_beside(shard: Path) -> Path:
    """Where the rows of a shard lie, wherever the shard does."""
    return shard.with_suffix(".arrow")


def write_rows(shard: Path, done: Finished, rows: Sequence[IndexRow]) -> None:
    """Write the rows of a shard beside it: its clips in order, those included that were rejected by writing it."""
    facts = {"shard": done.shard.model_dump(), "settings": done.settings, "clips": done.clips}
    metadata = {_FACTS: json.dumps(facts).encode()}
    rows_beside(shard).write_bytes(pack(table_of(rows).replace_schema_metadata(metadata)))


def read_finished(path: Path) -> Finished | None:
    """What such a file says of its shard; None where there is none that can be read: the shard is an unfinished one."""
    import pyarrow as pa

    try:
        table = read_table(path)
        known = table.schema.equals(index_schema(), check_metadata=False)
        facts = json.loads(table.schema.metadata[_FACTS])
        return Finished(**{**facts, "shard": Shard(**facts["shard"])}) if known else None
    except (OSError, ValueError, TypeError, KeyError, RecursionError, pa.ArrowException):
        return None
