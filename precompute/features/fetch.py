"""Between the passes: the embedded audio that missing shards need, copied out of Parquet files row group by row group.

A shard's clips lie in all row groups, and a row can only be reached by reading those before it. The copies go when the
shards are written; a build that is killed makes them again.
"""

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path

from xtts.precompute.archives.parquet_rows import average_bytes, is_row, read_row, reading_order, release_pages
from xtts.precompute.corpus.clip_audio import ClipAudio, whole_audio
from xtts.precompute.corpus.front_end import FrontEnd
from xtts.precompute.features.scan import Scanned, check_unchanged, row_group
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

    out: Path
    clips: list[Scanned]


@dataclass(frozen=True)
class Fetch:
    """The tasks of a build, and how much they are going to write."""

    folder: Path
    tasks: list[FetchTask]
    bytes: int
    """By the average of each row group."""


def plan_fetch(wanted: Iterable[Scanned], front_end: FrontEnd, folder: Path) -> Fetch:
    """What is to be copied into `folder`, which is for nothing else, before shards with these clips are written."""
    rows = [row for row in wanted if is_row(row.clip)]
    rows.sort(key=lambda row: reading_order(row.clip))
    tasks, size = list[FetchTask](), 0
    for _, members in groupby(rows, key=lambda row: row_group(row.clip, front_end)):
        clips = list(members)
        tasks.append(FetchTask(out=folder / f"audio-{len(tasks)}", clips=clips))
        size += len(clips) * average_bytes(front_end.path(clips[0].clip), clips[0].clip)
    return Fetch(folder, tasks, size)


@contextmanager
def fetched_audio(
    fetch: Fetch, front_end: FrontEnd, pool: Engine, progress: Progress
) -> Iterator[Mapping[str, Fetched]]:
    """Copy; gives where the audio of each clip lies, by its id. The copies go at the end, however it ends."""
    try:
        yield _run(fetch, front_end, pool, progress)
    finally:
        shutil.rmtree(fetch.folder, ignore_errors=True)


def _run(fetch: Fetch, front_end: FrontEnd, pool: Engine, progress: Progress) -> dict[str, Fetched]:
    if fetch.tasks:
        fetch.folder.mkdir()
        progress.start("audio", sum(len(task.clips) for task in fetch.tasks), 0.0)
    fetched = dict[str, Fetched]()
    for part in pool.run(partial(fetch_rows, front_end), fetch.tasks):
        fetched.update(part)
        progress.advance(len(part), 0.0)
    return fetched


def fetch_rows(front_end: FrontEnd, task: FetchTask) -> dict[str, Fetched]:
    """Do a task (runs in a worker); a clip that cannot be read is left to the writing of its shard, which says so."""
    return dict(_copy_rows(front_end, task))


def _copy_rows(front_end: FrontEnd, task: FetchTask) -> Iterator[tuple[str, Fetched]]:
    path, copy, place = front_end.path(task.clips[0].clip), new_part(task.out), 0
    with copy.open("wb", buffering=0) as out:
        for row in task.clips:
            try:
                data = read_row(path, row.clip.member)
            except AudioProblem:
                continue
            out.write(data)
            yield row.clip.id, Fetched(copy, place, len(data))
            place += len(data)
    release_pages()
    check_unchanged(task.clips[0], front_end)
