"""Between the passes: the embedded audio that missing shards need, copied out of Parquet files row group by row group.

A shard's clips lie in all row groups, and a row can only be reached by reading those before it. The copies go when the
shards are written; a build that is killed makes them again.
"""

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from xtts.precompute.archives.parquet_rows import read_row, release_pages
from xtts.precompute.corpus.clip_audio import ClipAudio, whole_audio
from xtts.precompute.corpus.front_end import FrontEnd
from xtts.precompute.features.row_parts import Spots, take_scanned
from xtts.precompute.features.scan import check_unchanged
from xtts.precompute.workers.engine import Engine
from xtts.precompute.workers.parts import new_part
from xtts.precompute.workers.progress import Progress
from xtts.shared.audio.decode import AudioProblem


@dataclass(frozen=True, slots=True)
class Fetched:
    """Where a copy of a clip's audio file lies."""

    path: Path
    offset: int
    size: int
    """Bytes."""

    def read(self) -> ClipAudio:
        """Decode it; raises `AudioProblem`."""
        descriptor = os.open(self.path, os.O_RDONLY)
        try:
            return whole_audio(os.pread(descriptor, self.size, self.offset))
        finally:
            os.close(descriptor)


@dataclass(frozen=True, kw_only=True)
class FetchTask:
    """Copy the audio of these clips, all of one row group and in the order of their rows, to a file of this name."""

    number: int
    out: Path
    parts: Path
    clips: Spots


@dataclass(frozen=True, kw_only=True)
class Copied:
    """What a task copied."""

    number: int
    path: Path
    places: np.ndarray
    """Of the clips in the task, int64[N]; those that cannot be read are missing."""
    offsets: np.ndarray
    sizes: np.ndarray


@dataclass(frozen=True, kw_only=True)
class FetchedClips:
    """Of the clips of a task those whose audio was copied."""

    places: np.ndarray
    """Places in the task."""
    paths: list[Path]
    offsets: np.ndarray
    sizes: np.ndarray

    def by_place(self) -> dict[int, Fetched]:
        """Where the copy of each lies."""
        values = zip(self.places.tolist(), self.paths, self.offsets.tolist(), self.sizes.tolist(), strict=True)
        return {place: Fetched(path, offset, size) for place, path, offset, size in values}


class FetchedAudio:
    """Copies of the audio of clips, by their numbers."""

    def __init__(self, numbers: np.ndarray) -> None:
        """numbers: of the clips that are to be copied, sorted."""
        self._numbers = numbers
        self._file = np.full(len(numbers), -1, np.int32)
        self._offsets, self._sizes = np.zeros(len(numbers), np.int64), np.zeros(len(numbers), np.int64)
        self._paths = dict[int, Path]()

    def add(self, numbers: np.ndarray, copied: Copied) -> None:
        """Note what a task with the clips of these numbers copied."""
        places = np.searchsorted(self._numbers, numbers[copied.places])
        self._file[places], self._paths[copied.number] = copied.number, copied.path
        self._offsets[places], self._sizes[places] = copied.offsets, copied.sizes

    def of(self, numbers: np.ndarray) -> FetchedClips:
        """Those of the clips with these numbers that were copied."""
        at = np.searchsorted(self._numbers, numbers)
        at[at == len(self._numbers)] = 0
        there = np.flatnonzero((self._numbers[at] == numbers) & (self._file[at] >= 0)) if len(self._numbers) else at[:0]
        at = at[there]
        paths = [self._paths[number] for number in self._file[at].tolist()]
        return FetchedClips(places=there, paths=paths, offsets=self._offsets[at], sizes=self._sizes[at])


@dataclass(frozen=True)
class Fetch:
    """What a build is going to copy."""

    folder: Path
    numbers: np.ndarray
    """Of the clips, sorted."""
    groups: list[np.ndarray]
    """Those of each row group."""
    bytes: int
    """By the average of each row group."""


def plan_fetch(numbers: np.ndarray, groups: np.ndarray, average_bytes: Sequence[int], folder: Path) -> Fetch:
    """What is to be copied into `folder`, which is for nothing else, before shards with these clips are written.

    Args:
        numbers: Of clips; those without a row group are left out.
        groups: Number of the row group of each of them, -1 for none.
        average_bytes: Of the audio of a row, for each row group.
        folder: Is made when something is copied.
    """
    numbers, groups = numbers[groups >= 0], groups[groups >= 0]
    order = np.lexsort((numbers, groups))
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    members = np.split(numbers[order], starts[1:]) if len(starts) else []
    size = sum(average_bytes[group] for group in groups.tolist())
    return Fetch(folder, np.sort(numbers), members, size)


@contextmanager
def fetched_audio(
    fetch: Fetch, parts: Path, spots_of: Callable[[np.ndarray], Spots], front_end: FrontEnd, pool: Engine,
    progress: Progress,
) -> Iterator[FetchedAudio]:  # fmt: skip
    """Copy; the copies go at the end, however it ends. The rows of the clips are in `parts`, at `spots_of` numbers."""
    fetched = FetchedAudio(fetch.numbers)
    try:
        if fetch.groups:
            fetch.folder.mkdir()
            progress.start("audio", len(fetch.numbers), 0.0)
        tasks = (
            FetchTask(number=number, out=fetch.folder / f"audio-{number}", parts=parts, clips=spots_of(numbers))
            for number, numbers in enumerate(fetch.groups)
        )
        for copied in pool.run(partial(fetch_rows, front_end), tasks):
            fetched.add(fetch.groups[copied.number], copied)
            progress.advance(len(fetch.groups[copied.number]), 0.0)
        yield fetched
    finally:
        shutil.rmtree(fetch.folder, ignore_errors=True)


def fetch_rows(front_end: FrontEnd, task: FetchTask) -> Copied:
    """Do a task (runs in a worker); a clip that cannot be read is left to the writing of its shard, which says so."""
    rows = take_scanned(task.parts, task.clips)
    path, copy, spans = front_end.path(rows[0].clip), new_part(task.out), list[tuple[int, int, int]]()
    with copy.open("wb", buffering=0) as out:
        offset = 0
        for place, row in enumerate(rows):
            try:
                data = read_row(path, row.clip.member)
            except AudioProblem:
                continue
            out.write(data)
            spans.append((place, offset, len(data)))
            offset += len(data)
    release_pages()
    check_unchanged(rows[0], front_end)
    places, offsets, sizes = np.array(spans, np.int64).reshape(-1, 3).T
    return Copied(number=task.number, path=copy, places=places, offsets=offsets, sizes=sizes)
