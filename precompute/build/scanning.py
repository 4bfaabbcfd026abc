"""The scan as the command runs it: clips go out in parts, with what earlier builds knew of them; columns come back."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

import numpy as np

from xtts.precompute.build.ledger import Ledger
from xtts.precompute.corpus.clip_audio import find_audio
from xtts.precompute.corpus.listed_clips import ListedClips
from xtts.precompute.features.clip_columns import ColumnsInParts
from xtts.precompute.features.earlier_rows import EarlierColumns, find_rows
from xtts.precompute.features.row_parts import Spots
from xtts.precompute.features.scan_part import Scanner, ScanResult, ScanTask, measure_part, scan_part
from xtts.precompute.workers.engine import Engine
from xtts.precompute.workers.progress import Progress
from xtts.shared.audio.mel_profiles import MelProfile, mel_profile
from xtts.shared.errors import LockstepError
from xtts.shared.text.letter_counts import LetterCounts


@dataclass(kw_only=True)
class Scan:
    """What a scan found."""

    ledger: Ledger
    """Of which `columns` are known at the end."""
    cached: np.ndarray
    """int32[N]: row of each clip among those of the finished cache, -1 for none."""
    cached_same: np.ndarray
    """uint8[N]: what of it is as it was there, as in `scan_part`."""
    staged: np.ndarray
    """Likewise among those of staged shards; empty where there is none."""
    staged_same: np.ndarray
    counts: dict[str, LetterCounts] = field(default_factory=dict)
    """Letters of each language, by code."""
    unnormalised: int = 0
    """Clips whose text is the raw one."""
    to_measure: list[tuple[int, np.ndarray]] = field(default_factory=list)
    """Parts with the places of clips that a filter wants decoded."""

    @property
    def letters(self) -> list[LetterCounts]:
        """Of each language, in the order of their codes."""
        return [self.counts[code] for code in sorted(self.counts)]


def scan_clips(
    scanner: Scanner, clips: ListedClips, cached: EarlierColumns, staged: EarlierColumns, pool: Engine,
    progress: Progress,
) -> Scan:  # fmt: skip
    """Scan, filter by header and text, and write the rows to parts; `measure` decides about what has to be decoded.

    cached: what the finished cache knew, staged: what the sidecars of an interrupted build know.
    """
    columns, starts = ColumnsInParts(len(clips)), clips.starts
    in_cache, in_stage = _find(clips, cached, staged)
    scan = Scan(
        cached=in_cache, cached_same=np.zeros(len(in_cache), np.uint8),
        staged=in_stage, staged_same=np.zeros(len(in_stage), np.uint8),
        ledger=Ledger(folder=scanner.folder, starts=starts, columns=columns.whole()),
    )  # fmt: skip
    progress.start("scan", len(clips), 0.0)
    for result in pool.run(partial(scan_part, scanner), _tasks(clips, scan, cached, staged)):
        if pool.spans_machines:
            _check_missing(result)
        start = int(starts[result.number])
        columns.fill(start, result.columns)
        _note(scan, start, result)
        progress.advance(len(result.columns), 0.0)
    scan.ledger = Ledger(folder=scanner.folder, starts=starts, columns=columns.whole())
    return scan


def _find(clips: ListedClips, *earlier: EarlierColumns) -> list[np.ndarray]:
    """int32[N] each: row of each clip among those of earlier builds, -1 for none; empty where they have no rows."""
    if not any(map(len, earlier)):
        return [np.zeros(0, np.int32) for _ in earlier]
    high, low, again = clips.digests()
    found = [find_rows(rows, high, low) for rows in earlier]
    for rows in found:
        rows[again[: len(rows)]] = -1
    return found


def _tasks(clips: ListedClips, scan: Scan, cached: EarlierColumns, staged: EarlierColumns) -> Iterator[ScanTask]:
    for number, (start, end) in enumerate(pairwise(scan.ledger.starts.tolist())):
        in_cache, cached_spots = _known(scan.cached[start:end], cached)
        in_stage, staged_spots = _known(scan.staged[start:end], staged)
        yield ScanTask(
            number=number, clips=clips.packed(number), cached=in_cache, cached_spots=cached_spots, staged=in_stage,
            staged_spots=staged_spots,
        )  # fmt: skip


def _known(rows: np.ndarray, earlier: EarlierColumns) -> tuple[np.ndarray, Spots]:
    """Places of the clips that have an earlier row, and where those rows are."""
    places = np.flatnonzero(rows >= 0).astype(np.int32)
    return places, earlier.spots(rows[places])


def _note(scan: Scan, start: int, result: ScanResult) -> None:
    """Add what a part found."""
    part = slice(start, start + len(result.columns))
    for rows, same, found in (
        (scan.cached, scan.cached_same, result.cached), (scan.staged, scan.staged_same, result.staged),
    ):  # fmt: skip
        if len(rows):
            same[part][rows[part] >= 0] = found
    for one in result.letters:
        scan.counts.setdefault(one.language, LetterCounts(one.language)).merge(one)
    scan.unnormalised += result.unnormalised
    if len(result.to_measure):
        scan.to_measure.append((result.number, result.to_measure))


def _check_missing(result: ScanResult) -> None:
    """A `LockstepError` for a file that another machine does not see: its clip must not count as one without audio."""
    for path in result.missing:
        if find_audio(path) is not None:
            fix = "mount the corpus there at the same path, and run the same command again"
            raise LockstepError(str(path), found=f"not seen from {result.host}", fix=fix, exit_code=1)


def measure(scan: Scan, scanner: Scanner, pool: Engine, progress: Progress) -> None:
    """Decode the clips of `to_measure`, and reject by what is found."""
    if not scan.to_measure:
        return
    columns, starts = scan.ledger.columns, scan.ledger.starts
    seconds = partial(seconds_of, profile=mel_profile(scanner.config.audio.profile))
    numbers = {number: starts[number] + places for number, places in scan.to_measure}
    clips = sum(map(len, numbers.values()))
    progress.start("measure", clips, sum(seconds(columns.frames[some]) for some in numbers.values()))
    for measured in pool.run(partial(measure_part, scanner), scan.to_measure):
        columns.reason[starts[measured.number] + measured.places] = measured.reasons
        progress.advance(len(measured.places), seconds(columns.frames[numbers[measured.number]]))


def seconds_of(frames: np.ndarray, profile: MelProfile) -> float:
    """Seconds of sound in so many frames, nearly."""
    return float(frames.sum(dtype=np.int64) * profile.hop_samples / profile.sample_rate)
