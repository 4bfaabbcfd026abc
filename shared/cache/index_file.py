"""Opening `index.parquet`, which may come from anywhere, and finding single clips in it."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from xtts.shared.errors import LockstepError, repair_command

_ANY_ROWS = 2**25
"""Rows that a file of any size may claim; further ones take a byte each at the least, by their digests alone."""


@contextmanager
def readable_index(path: Path, schema_of: Callable[[Collection[str]], Any]) -> Iterator[Any]:
    """The `pyarrow.parquet.ParquetFile`, open; a `LockstepError` for all that is wrong with it, then and later.

    schema_of: the columns that are wanted if these, which are there, are optional.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    fix = repair_command(path.parent)
    try:
        with pq.ParquetFile(path) as file:
            size, rows, schema = path.stat().st_size, file.metadata.num_rows, file.schema_arrow
            wrong = f"{rows} rows in {size} bytes" if rows > max(_ANY_ROWS, size) else ""
            if not schema.equals(schema_of(schema.names)):
                wrong = "other columns than this version writes"
            if wrong:
                raise LockstepError(str(path), found=wrong, fix=fix, exit_code=1)
            yield file
    except (OSError, ValueError, pa.ArrowException) as error:
        raise LockstepError(str(path), found=f"cannot be read ({error})", fix=fix, exit_code=1) from None
