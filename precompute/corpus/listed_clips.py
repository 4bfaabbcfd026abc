"""The clips of all corpora as files of some thousand each: reading lists is a task, and nobody has to hold them all."""

import pickle
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from weakref import finalize

import numpy as np

from xtts.precompute.archives.parquet_rows import group_of, is_row
from xtts.precompute.corpus.clip_digests import digest_columns
from xtts.precompute.corpus.corpora import Corpora, read_corpora
from xtts.precompute.corpus.corpus_entries import CorpusEntry
from xtts.precompute.corpus.listing import with_numbers_in_words
from xtts.precompute.workers.engine import Engine
from xtts.precompute.workers.pool import WorkerPool
from xtts.precompute.workers.stopping import disk_errors_explained
from xtts.shared.cache.clip_index import Clip

_LEAST_CLIPS, _MOST_CLIPS, _ENOUGH_CHUNKS = 64, 4096, 512
"""Of a chunk; and how many chunks are enough to keep all workers busy to the end."""


@dataclass(frozen=True, kw_only=True)
class ListTask:
    """Read these corpora, as `read_corpora` does, and write their clips to files in `folder`."""

    entries: Sequence[CorpusEntry]
    limit: int | None
    numbers_in_words: str | None
    """The main language, if numbers are to be put into words."""
    seed: int
    """Of the digests."""
    folder: Path


@dataclass(frozen=True, kw_only=True)
class Listing:
    """What a `ListTask` read; all but the clips."""

    corpora: Corpora
    """Without clips."""
    starts: list[int]
    """Number of the first clip of each file, and of all clips."""
    languages: list[str]
    """Of the clips with texts, in the order in which they are met; empty for the main one."""


class ListedClips:
    """Clips in the order of their corpora, in chunks that are read one at a time."""

    def __init__(self, folder: Path, starts: Sequence[int], languages: Sequence[str]) -> None:
        """The files go with this object."""
        self.starts = np.array(starts, np.int64)
        """int64[P + 1]: number of the first clip of each chunk, and of all clips."""
        self.languages = list(languages)
        """Of the clips with texts, in the order in which they are met; empty for the main one."""
        self._folder = folder
        self._end = finalize(self, shutil.rmtree, folder, ignore_errors=True)

    def __len__(self) -> int:
        return int(self.starts[-1])

    def __iter__(self) -> Iterator[Clip]:
        for number in range(len(self.starts) - 1):
            yield from unpack(self.packed(number))

    def packed(self, number: int) -> bytes:
        """A chunk, as `unpack` takes it."""
        return _chunk_path(self._folder, number).read_bytes()

    def digests(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """`digest_columns` of all clips, and bool[N]: whether a line before has the id."""
        names = ("high", "low", "again")
        high, low, again = (np.load(self._folder / f"{name}.npy") for name in names)
        return high, low, again


def unpack(chunk: bytes) -> list[Clip]:
    """The clips of a chunk."""
    clips: list[Clip] = pickle.loads(chunk)
    return clips


def list_clips(
    entries: Sequence[CorpusEntry], pool: Engine | None, *, limit: int | None, numbers_in_words: str | None, seed: int
) -> tuple[Corpora, ListedClips]:
    """What `read_corpora` gives, by a task of the pool; without one, in this process.

    numbers_in_words: the main language, if numbers are to be put into words; seed: of the digests.
    """
    folder = Path(tempfile.mkdtemp(prefix="lockstep-"))
    task = ListTask(entries=entries, limit=limit, numbers_in_words=numbers_in_words, seed=seed, folder=folder)
    try:
        with disk_errors_explained(folder):
            if pool is None:
                listing = write_listing(task)
            elif pool.spans_machines:  # another one does not see the folder
                with WorkerPool(1) as own:
                    (listing,) = own.run(write_listing, [task])
            else:
                (listing,) = pool.run(write_listing, [task])
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return listing.corpora, ListedClips(folder, listing.starts, listing.languages)


def write_listing(task: ListTask) -> Listing:
    """Do a task (runs in a worker)."""
    corpora = read_corpora(task.entries, limit=task.limit)
    clips = corpora.clips
    if task.numbers_in_words is not None:
        clips = with_numbers_in_words(clips, task.numbers_in_words)
    size, starts = min(_MOST_CLIPS, max(_LEAST_CLIPS, len(clips) // _ENOUGH_CHUNKS)), [0]
    for number, chunk in enumerate(_in_chunks(clips, corpora, size)):
        _chunk_path(task.folder, number).write_bytes(pickle.dumps(chunk, pickle.HIGHEST_PROTOCOL))
        starts.append(starts[-1] + len(chunk))
    high, low = digest_columns(task.seed, [clip.id for clip in clips])
    again = np.array([clip.duplicate for clip in clips], bool)
    for name, column in (("high", high), ("low", low), ("again", again)):
        np.save(task.folder / f"{name}.npy", column)
    languages = dict.fromkeys(clip.language for clip in clips if clip.text and not clip.duplicate)
    return Listing(corpora=replace(corpora, clips=[]), starts=starts, languages=list(languages))


def _chunk_path(folder: Path, number: int) -> Path:
    return folder / f"{number:06d}.clips"


def _in_chunks(clips: Iterable[Clip], corpora: Corpora, size: int) -> Iterator[list[Clip]]:
    """About `size` each; those in a row group of a Parquet file together, since they have to be read one by one."""
    chunk = list[Clip]()
    for group, members in groupby(clips, key=lambda clip: row_group(clip, corpora.roots[clip.corpus] / clip.source)):
        for clip in members:
            chunk.append(clip)
            if group is None and len(chunk) >= size:
                yield chunk
                chunk = []
        if len(chunk) >= size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def row_group(clip: Clip, path: Path) -> tuple[str, int] | None:
    """(file, number) of the row group that holds a clip's audio; its file lies at `path`."""
    return (str(path), group_of(path, clip)) if is_row(clip) else None
