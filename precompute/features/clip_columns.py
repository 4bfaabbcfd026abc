"""What the command of a build holds of each clip: a few numbers, in columns. Texts, ids and paths are elsewhere."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

import numpy as np

from xtts.precompute.corpus.clip_digests import digest_columns, text_digests
from xtts.precompute.features.scan import ScannedRow
from xtts.shared.cache.clip_index import REASONS, Rejected

KEPT_REASON = 0
"""In a column of reasons; the others are 1 + their place in `REASONS`."""
NOBODY = -1
"""In a column of speakers: the clip names none."""


@dataclass(frozen=True, kw_only=True)
class ClipColumns:
    """Columns of N clips; a clip's number is its place in them."""

    high: np.ndarray
    """uint64[N]: the first 8 bytes of `clip_digest`, which with `low` decide the order."""
    low: np.ndarray
    """uint64[N]: the next 8, which decide the shard."""
    text: np.ndarray
    """uint32[N]: the upper half of `text_digests`, which decides the split."""
    tokens: np.ndarray
    """uint32[N], 0 where unknown."""
    frames: np.ndarray
    """uint32[N], 0 where unknown."""
    speaker: np.ndarray
    """int32[N]: place in `speakers`, or `NOBODY`."""
    corpus: np.ndarray
    """uint16[N]: place in `corpora`."""
    reason: np.ndarray
    """uint8[N]: why the clip is rejected, or `KEPT_REASON`."""
    speakers: list[str]
    corpora: list[str]

    def __len__(self) -> int:
        return len(self.high)


def reason_number(reason: str) -> int:
    """What stands for a reason in a column."""
    return 1 + REASONS.index(reason)


def columns_of(rows: Sequence[ScannedRow], seed: int) -> ClipColumns:
    """The columns of scanned clips."""
    high, low = digest_columns(seed, [row.clip.id for row in rows])
    text = text_digests((seed, row.clip.text) for row in rows) >> np.uint64(32)
    speakers = sorted({row.clip.speaker for row in rows if row.clip.speaker})
    corpora = sorted({row.clip.corpus for row in rows})
    of_speaker = {"": NOBODY, **{name: number for number, name in enumerate(speakers)}}
    of_corpus = {name: number for number, name in enumerate(corpora)}

    def column(kind: type[np.generic], value: Callable[[ScannedRow], int]) -> np.ndarray:
        return np.fromiter(map(value, rows), kind, len(rows))

    return ClipColumns(
        high=high, low=low, text=text.astype(np.uint32),
        tokens=column(np.uint32, lambda row: row.tokens.token_length if row.tokens else 0),
        frames=column(np.uint32, lambda row: row.audio.mel_length if row.audio else 0),
        speaker=column(np.int32, lambda row: of_speaker[row.clip.speaker]),
        corpus=column(np.uint16, lambda row: of_corpus[row.clip.corpus]),
        reason=column(np.uint8, _reason),
        speakers=speakers, corpora=corpora,
    )  # fmt: skip


def _reason(row: ScannedRow) -> int:
    return reason_number(row.rejection.reason) if isinstance(row, Rejected) else KEPT_REASON


class ColumnsInParts:
    """Columns of N clips that are filled part by part, in any order."""

    def __init__(self, clips: int) -> None:
        empty = columns_of([], 0)
        self._columns = {
            field.name: np.zeros(clips, getattr(empty, field.name).dtype)
            for field in fields(ClipColumns)
            if isinstance(getattr(empty, field.name), np.ndarray)
        }
        self._speakers, self._corpora = dict[str, int](), dict[str, int]()

    def fill(self, start: int, part: ClipColumns) -> None:
        """Put the columns of a part where its first clip has the number `start`."""
        places = slice(start, start + len(part))
        for name, column in self._columns.items():
            column[places] = getattr(part, name)
        self._columns["speaker"][places] = _renumbered(part.speaker, part.speakers, self._speakers)
        self._columns["corpus"][places] = _renumbered(part.corpus, part.corpora, self._corpora)

    def whole(self) -> ClipColumns:
        """The columns of all clips."""
        return ClipColumns(**self._columns, speakers=list(self._speakers), corpora=list(self._corpora))


def _renumbered(numbers: np.ndarray, names: Sequence[str], known: dict[str, int]) -> np.ndarray:
    """The numbers of names in `known`, which gets those that are new; `NOBODY` stays."""
    table = np.array([*(known.setdefault(name, len(known)) for name in names), NOBODY], np.int64)
    return table[numbers.astype(np.int64)]
