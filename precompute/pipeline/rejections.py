"""Rejected clips: how many for which reason. Too many stop a build."""

from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from xtts.precompute.corpus.corpus_files import described_files, visible_names
from xtts.precompute.features.tables import counted
from xtts.shared.cache.clip_index import MISSING_AUDIO, REJECTED, rows_of, strings
from xtts.shared.config import Config
from xtts.shared.errors import LockstepError

if TYPE_CHECKING:
    import pyarrow as pa

_EXAMPLES = 3


def rejected_clips(*tables: "pa.Table") -> "pa.Table":
    """Of tables with the columns of an index the rows that are rejected, in one table."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return pa.concat_tables([table.filter(pc.equal(table["status"], REJECTED)) for table in tables])


def check_rejects(rejected: "pa.Table", config: Config, data: str, roots: Mapping[str, Path], *, of: int) -> None:
    """A `LockstepError` when too many of so many clips, or all, are rejected; roots: each corpus to its folder."""
    reasons, share = counted(rejected["reason"]), config.shapes.max_reject_fraction
    if len(rejected) < of and len(rejected) <= share * of:
        return
    found = "; ".join(f"{count} {reason} ({_examples(rejected, reason)})" for reason, count in reasons.items())
    if MISSING_AUDIO in reasons:
        found += _looked_for(rejected, roots)
    if len(rejected) == of:
        raise LockstepError(data, found=f"all {of} clips are rejected: {found}", exit_code=1)
    fix = "fix the corpus, or allow it with --set shapes.max_reject_fraction=..."
    found = f"{len(rejected)} of {of} clips are rejected: {found}"
    raise LockstepError(data, found=found, expected=f"at most {share:.1%}", fix=fix, exit_code=1)


def _of_reason(table: "pa.Table", reason: str, most: int) -> "pa.Table":
    import pyarrow.compute as pc

    return table.filter(pc.equal(table["reason"], reason)).slice(0, most)


def _looked_for(table: "pa.Table", roots: Mapping[str, Path]) -> str:
    """Where the first missing file was looked for, and what is there instead; nothing of what an archive holds."""
    (row,) = rows_of(_of_reason(table, MISSING_AUDIO, 1))
    if row.clip.archive[0]:
        return ""
    root, source = roots[row.clip.corpus], PurePath(row.clip.source)
    others = [name for name in visible_names(root / source.parent) if name != source.name]
    alike = [name for name in others if name.casefold() == source.name.casefold()]
    there = (
        f"{alike[0]} is (case differs)" if alike else described_files(root, dict.fromkeys((str(source.parent), ".")))
    )
    return f"; {row.clip.source} is not there, but {there}"


def _examples(table: "pa.Table", reason: str) -> str:
    ids = strings(_of_reason(table, reason, _EXAMPLES + 1)["id"])
    return ", ".join(ids[:_EXAMPLES]) + ", ..." * (len(ids) > _EXAMPLES)
