"""The first pass as tasks: find, recall or scan, filter and measure a handful of clips; their rows go to a part."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from socket import gethostname

import numpy as np

from xtts.precompute.corpus.front_end import FrontEnd
from xtts.precompute.corpus.listed_clips import unpack
from xtts.precompute.features.clip_columns import ClipColumns, columns_of
from xtts.precompute.features.extract import measure_clips
from xtts.precompute.features.filters import (
    ask_for_samples,
    filter_by_header,
    filter_by_signal,
    must_be_measured,
    with_earlier_quality,
)
from xtts.precompute.features.finished_shard import same_clip
from xtts.precompute.features.row_parts import (
    EARLIER_PARTS,
    SCANNED_PARTS,
    Spots,
    part_path,
    read_rows,
    take_rows,
    write_part,
)
from xtts.precompute.features.scan import (
    Found,
    ScannedRow,
    find_file,
    judge,
    may_be_same_file,
    recall,
    same_file,
    scan_clip,
)
from xtts.precompute.workers.parts import check_visible
from xtts.shared.cache.clip_index import Clip, IndexRow, Kept
from xtts.shared.cache.stats import letters_of
from xtts.shared.config import Config
from xtts.shared.text.letter_counts import LetterCounts

SAME_AUDIO, SAME_TEXT, SAME_LANGUAGE, SAME_SPEAKER, SAME_FILE, SAME_CLIP = (1 << bit for bit in range(6))
"""What of a clip is as an earlier build had it; the first may be so, of the fifth its mel can be taken, the last one's
record would have the same bytes."""


@dataclass(frozen=True, kw_only=True)
class Scanner:
    """What all tasks of a scan have in common."""

    front_end: FrontEnd
    config: Config
    folder: Path
    """Of the parts."""
    same_audio: bool
    """The finished cache was built with these settings of audio: what was found then need not be found again."""
    same_text: bool
    """Likewise of text."""


@dataclass(frozen=True, kw_only=True)
class ScanTask:
    """Clips that follow each other in their corpus."""

    number: int
    """Of the part to write."""
    clips: bytes
    """As `unpack` takes them."""
    cached: np.ndarray
    """Places in `clips` of those in the finished cache; rows of it at `cached_spots`."""
    cached_spots: Spots
    staged: np.ndarray
    """Likewise of those that an interrupted build left in shards."""
    staged_spots: Spots


@dataclass(frozen=True, kw_only=True)
class ScanResult:
    """All that the command learns of a part."""

    number: int
    columns: ClipColumns
    cached: np.ndarray
    """uint8: `SAME_AUDIO` and so on, of the clips of `ScanTask.cached`."""
    staged: np.ndarray
    to_measure: np.ndarray
    """Places of the clips that a filter wants decoded."""
    letters: list[LetterCounts]
    unnormalised: int
    """Clips whose text is the raw one."""
    missing: list[Path]
    """Files that are not there for the worker."""
    host: str
    """Name of its machine."""


def scan_part(scanner: Scanner, task: ScanTask) -> ScanResult:
    """Scan the clips of a task, and write their rows to its part (runs in a worker)."""
    front_end = scanner.front_end
    clips = unpack(task.clips)
    for corpus in sorted({clip.corpus for clip in clips}):
        check_visible(front_end.roots[corpus])
    cached = _by_place(task.cached, take_rows(scanner.folder, EARLIER_PARTS, task.cached_spots))
    staged = _by_place(task.staged, take_rows(scanner.folder, EARLIER_PARTS, task.staged_spots))
    rows = [_scan(scanner, clip, cached.get(place)) for place, clip in enumerate(clips)]
    letters = letters_of(rows, front_end.language)
    known = cached if scanner.same_audio else {}
    to_measure, samples = list[int](), ask_for_samples(scanner.config.data.filters)
    for place, row in enumerate(rows):
        earlier = [one[place] for one in (known, staged) if place in one]
        rows[place] = with_earlier_quality(filter_by_header(row, scanner.config), earlier)
        if samples and must_be_measured(rows[place], earlier):
            to_measure.append(place)
        elif samples:
            rows[place] = filter_by_signal(rows[place], scanner.config.data.filters)
    write_part(part_path(scanner.folder, SCANNED_PARTS, task.number), rows)
    return ScanResult(
        number=task.number,
        columns=columns_of(rows, scanner.config.split.seed),
        cached=_sameness(task.cached, rows, cached), staged=_sameness(task.staged, rows, staged),
        to_measure=np.array(to_measure, np.int32), letters=letters,
        unnormalised=sum(not clip.normalised for clip in clips),
        host=gethostname(),
        missing=[front_end.path(row.clip) for row in rows if row.file is None],
    )  # fmt: skip


def _by_place(places: np.ndarray, rows: Sequence[ScannedRow | IndexRow]) -> dict[int, IndexRow]:
    return dict(zip(places.tolist(), rows, strict=True))


def _scan(scanner: Scanner, clip: Clip, was: IndexRow | None) -> ScannedRow:
    cached = was if scanner.same_audio else None
    found = find_file(clip, scanner.front_end)
    recalled = recall(found, cached if scanner.same_text else None)
    if recalled is not None:
        return recalled
    it = scan_clip(found, cached, scanner.front_end)
    return judge(Found(clip, it.file), it.tokens, it.audio)


def _sameness(places: np.ndarray, rows: Sequence[ScannedRow], earlier: dict[int, IndexRow]) -> np.ndarray:
    return np.array([_same(rows[place], earlier[place]) for place in places.tolist()], np.uint8)


def _same(row: ScannedRow, was: IndexRow) -> int:
    is_kept = isinstance(was, Kept)
    facts = (
        (SAME_AUDIO, may_be_same_file(row, was)), (SAME_TEXT, row.clip.text == was.clip.text),
        (SAME_LANGUAGE, row.clip.language == was.clip.language), (SAME_SPEAKER, row.clip.speaker == was.clip.speaker),
        (SAME_FILE, is_kept and same_file(row, was)), (SAME_CLIP, same_clip(row, was)),
    )  # fmt: skip
    return sum(bit for bit, holds in facts if holds)


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What decoding changed: why clips of a part are rejected now, by their places."""

    number: int
    places: np.ndarray
    reasons: np.ndarray


def measure_part(scanner: Scanner, task: tuple[int, np.ndarray]) -> Measured:
    """Decode and measure the clips at some places of a part, and reject by what is found (runs in a worker)."""
    number, places = task
    path = part_path(scanner.folder, SCANNED_PARTS, number)
    rows: list[ScannedRow] = read_rows(path)  # type: ignore[assignment] # what `scan_part` wrote
    numbered = [(place, rows[place]) for place in places.tolist()]
    for place, quality in measure_clips(scanner.front_end, numbered):
        rows[place] = filter_by_signal(replace(rows[place], quality=quality), scanner.config.data.filters)
    write_part(path, rows)
    columns = columns_of([rows[place] for place in places.tolist()], scanner.config.split.seed)
    return Measured(number=number, places=places, reasons=columns.reason)
