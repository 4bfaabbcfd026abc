"""The ledger of a build as its command holds it: columns, and where the rows are. Too many rejections stop it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

import numpy as np

from xtts.precompute.corpus.corpus_files import described_files
from xtts.precompute.features.clip_columns import KEPT_REASON, ClipColumns
from xtts.precompute.features.row_parts import SCANNED_PARTS, Spots, take_rows
from xtts.shared.cache.clip_index import MISSING_AUDIO, REASONS
from xtts.shared.config import Config
from xtts.shared.errors import LockstepError

_EXAMPLES = 3


@dataclass(frozen=True, kw_only=True)
class Ledger:
    """All clips of the corpora, by number: in the order of the corpora, and of the clips in each."""

    folder: Path
    """Of the parts that hold the rows."""
    starts: np.ndarray
    """int64[P + 1]: number of the first clip of each part, and of all clips."""
    columns: ClipColumns

    def spots(self, numbers: np.ndarray) -> Spots:
        """Where the rows of these clips are."""
        parts = np.searchsorted(self.starts, numbers, "right") - 1
        return parts.astype(np.int32), (numbers - self.starts[parts]).astype(np.int32)

    def ids(self, numbers: Sequence[int] | np.ndarray) -> list[str]:
        """The ids of some clips; each is read from its part."""
        return [row.clip.id for row in take_rows(self.folder, SCANNED_PARTS, self.spots(np.asarray(numbers, np.int64)))]

    def parts_with_rejected(self) -> list[int]:
        """Numbers of the parts that hold a rejected clip."""
        rejected = np.flatnonzero(self.columns.reason != KEPT_REASON)
        return list(map(int, np.unique(np.searchsorted(self.starts, rejected, "right") - 1)))

    def rejections(self) -> dict[str, int]:
        """Reason to number of clips: the most frequent first, of equal ones the one that is met first."""
        return {reason: count for reason, (count, _) in self._rejected().items()}

    def _rejected(self) -> Mapping[str, tuple[int, np.ndarray]]:
        """Reason to number of clips and the numbers of some, as `rejections` has them."""
        reason = self.columns.reason
        counts = np.bincount(reason, minlength=len(REASONS) + 1)
        found = {code: np.flatnonzero(reason == code)[: _EXAMPLES + 1] for code in np.flatnonzero(counts) if code}
        order = sorted(found, key=lambda code: (-counts[code], found[code][0]))
        return {REASONS[code - 1]: (int(counts[code]), found[code]) for code in order}

    def check_rejects(self, config: Config, data: str, roots: Mapping[str, Path]) -> None:
        """Stop when too many clips, or all, are rejected; roots: each corpus to its folder."""
        clips, reasons = len(self.columns), self._rejected()
        rejected, share = sum(count for count, _ in reasons.values()), config.shapes.max_reject_fraction
        if rejected < clips and rejected <= share * clips:
            return
        found = "; ".join(f"{count} {reason} ({self._examples(some)})" for reason, (count, some) in reasons.items())
        if MISSING_AUDIO in reasons:
            found += self._looked_for(int(reasons[MISSING_AUDIO][1][0]), roots)
        if rejected == clips:
            raise LockstepError(data, found=f"all {clips} clips are rejected: {found}", exit_code=1)
        fix = "fix the corpus, or allow it with --set shapes.max_reject_fraction=..."
        found = f"{rejected} of {clips} clips are rejected: {found}"
        raise LockstepError(data, found=found, expected=f"at most {share:.1%}", fix=fix, exit_code=1)

    def _looked_for(self, number: int, roots: Mapping[str, Path]) -> str:
        """Where the missing file of a clip was looked for, and what is there instead; nothing of a row or member."""
        (row,) = take_rows(self.folder, SCANNED_PARTS, self.spots(np.array([number])))
        if row.clip.archive[0]:
            return ""
        folders = dict.fromkeys((PurePath(row.clip.source).parent.as_posix(), "."))
        return f"; {row.clip.source} is not there, but {described_files(roots[row.clip.corpus], folders)}"

    def _examples(self, numbers: np.ndarray) -> str:
        return ", ".join(self.ids(numbers[:_EXAMPLES])) + (", ..." if len(numbers) > _EXAMPLES else "")
