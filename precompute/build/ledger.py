"""The ledger as a whole: joining what the passes found out, and stopping at too many rejections."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from xtts.precompute.build.staging import Finished
from xtts.shared.cache.clip_index import REJECTED, IndexRow
from xtts.shared.config import Config
from xtts.shared.errors import LockstepError

_EXAMPLES = 3


def gather(rows: list[IndexRow], finished: Mapping[str, Finished]) -> list[IndexRow]:
    """Scanned rows, with what writing their shards found out; paths, times and notes as they are now."""
    outcomes = {row.id: row for shard in finished.values() for row in shard.rows}
    return [row if row.status == REJECTED else _join(row, outcomes[row.id]) for row in rows]


_PRESENT = ("source", "source_bytes", "source_mtime_ns", "notes")


def _join(row: IndexRow, outcome: IndexRow) -> IndexRow:
    now = {name: getattr(row, name) for name in _PRESENT}
    return replace(outcome, **now) if any(getattr(outcome, name) != now[name] for name in now) else outcome


def check_rejects(rows: list[IndexRow], config: Config, data: Path) -> None:
    """Stop when too many clips, or all, are rejected."""
    reasons = Counter(row.reason for row in rows if row.reason)
    rejected, share = sum(reasons.values()), config.shapes.max_reject_fraction
    if rejected < len(rows) and rejected <= share * len(rows):
        return
    found = "; ".join(f"{count} {reason} ({_examples(rows, reason)})" for reason, count in reasons.most_common())
    if rejected == len(rows):
        raise LockstepError(str(data), found=f"all {len(rows)} clips are rejected: {found}", exit_code=1)
    fix = "mend the corpus, or allow it with --set shapes.max_reject_fraction=..."
    found = f"{rejected} of {len(rows)} clips are rejected: {found}"
    raise LockstepError(str(data), found=found, expected=f"at most {share:.1%}", fix=fix, exit_code=1)


def _examples(rows: list[IndexRow], reason: str | None) -> str:
    ids = [row.id for row in rows if row.reason == reason]
    return ", ".join(ids[:_EXAMPLES]) + (", ..." if len(ids) > _EXAMPLES else "")
