"""The ledger as a whole: joining what the passes found out, and stopping at too many rejections."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from xtts.precompute.features.finished_shard import Finished
from xtts.precompute.features.scan import Scanned, ScannedRow
from xtts.shared.cache.clip_index import IndexRow, Kept, Rejected
from xtts.shared.config import Config
from xtts.shared.errors import LockstepError

_EXAMPLES = 3


def gather(rows: list[ScannedRow], finished: Mapping[str, Finished]) -> list[IndexRow]:
    """Scanned rows, with what writing their shards found out; paths, times and notes as they are now."""
    outcomes = {row.clip.id: row for shard in finished.values() for row in shard.rows}
    return [row if isinstance(row, Rejected) else _join(row, outcomes[row.clip.id]) for row in rows]


def _join(row: Scanned, outcome: IndexRow) -> IndexRow:
    quality = (outcome.quality or row.quality) if isinstance(outcome, Kept) else None
    same = (row.clip, row.file, row.audio, quality) == (outcome.clip, outcome.file, outcome.audio, outcome.quality)
    return outcome if same else replace(outcome, clip=row.clip, file=row.file, audio=row.audio, quality=quality)


def check_rejects(rows: Sequence[Scanned | IndexRow], config: Config, data: str) -> None:
    """Stop when too many clips, or all, are rejected."""
    rejected_clips = [row for row in rows if isinstance(row, Rejected)]
    reasons = Counter(row.rejection.reason for row in rejected_clips)
    rejected, share = sum(reasons.values()), config.shapes.max_reject_fraction
    if rejected < len(rows) and rejected <= share * len(rows):
        return
    found = "; ".join(
        f"{count} {reason} ({_examples(rejected_clips, reason)})" for reason, count in reasons.most_common()
    )
    if rejected == len(rows):
        raise LockstepError(data, found=f"all {len(rows)} clips are rejected: {found}", exit_code=1)
    fix = "fix the corpus, or allow it with --set shapes.max_reject_fraction=..."
    found = f"{rejected} of {len(rows)} clips are rejected: {found}"
    raise LockstepError(data, found=found, expected=f"at most {share:.1%}", fix=fix, exit_code=1)


def _examples(rows: list[Rejected], reason: str) -> str:
    ids = [row.clip.id for row in rows if row.rejection.reason == reason]
    return ", ".join(ids[:_EXAMPLES]) + (", ..." if len(ids) > _EXAMPLES else "")
