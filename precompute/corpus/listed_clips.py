"""The clips of all corpora in chunks of some thousand, in a file: reading lists is a task, nobody holds them all."""

import os
import pickle
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

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
    """Read these corpora, as `read_corpora` does, and write their clips to the file `path`."""

    entries: Sequence[CorpusEntry]
    limit: int | None
    numbers_in_words: str | None
    """The main language, if numbers are to be put into words."""
    seed: int
    """Of the digests."""
    path: Path


@dataclass(frozen=True, kw_only=True)
class Listing:
    """What a `ListTask` read; all but the clips."""

    corpora: Corpora
    """Without clips."""
    starts: list[int]
    """Number of the first clip of each chunk, and of all clips."""
    offsets: list[int]
    """Byte at which each chunk begins, and where the last one ends; then come the digests."""
    languages: list[str]
    """Of the clips with texts, in the order in which they are met; empty for the main one."""


class ListedClips:
    """Clips in the order of their corpora, in chunks that are read one at a time."""

    def __init__(self, path: Path, listing: Listing) -> None:
        """The file is without a name from now on: it goes with this process, however that ends."""
        self._file = path.open("rb")
        path.unlink()
        self._offsets = listing.offsets
        self.starts = np.array(listing.starts, np.int64)
        """int64[P + 1]: number of the first clip of each chunk, and of all clips."""
        self.languages = listing.languages
        """Of the clips with texts, in the order in which they are met; empty for the main one."""

    def __len__(self) -> int:
        return int(self.starts[-1])

    def __iter__(self) -> Iterator[Clip]:
        for number in range(len(self.starts) - 1):
            yield from unpack(self.packed(number))

    def packed(self, number: int) -> bytes:
        """A chunk, as `unpack` takes it."""
        return self._bytes(self._offsets[number], self._offsets[number + 1] - self._offsets[number])

    def digests(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """`digest_columns` of all clips, and bool[N]: whether a line before has the id."""
        count, start = len(self), self._offsets[-1]
        high, low = (np.frombuffer(self._bytes(start + at, 8 * count), np.uint64) for at in (0, 8 * count))
        return high, low, np.frombuffer(self._bytes(start + 16 * count, count), bool)

    def _bytes(self, start: int, count: int) -> bytes:
        self._file.seek(start)
        return self._file.read(count)


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
    descriptor, name = tempfile.mkstemp(prefix="lockstep-")
    os.close(descriptor)
    path = Path(name)
    task = ListTask(entries=entries, limit=limit, numbers_in_words=numbers_in_words, seed=seed, path=path)
    try:
        with disk_errors_explained(path):
            if pool is None:
                listing = write_listing(task)
            elif pool.spans_machines:  # another one does not see the file
                with WorkerPool(1) as own:
                    (listing,) = own.run(write_listing, [task])
            else:
                (listing,) = pool.run(write_listing, [task])
        return listing.corpora, ListedClips(path, listing)
    finally:
        path.unlink(missing_ok=True)


def write_listing(task: ListTask) -> Listing:
    """Do a task (runs in a worker)."""
    corpora = read_corpora(task.entries, limit=task.limit)
    clips = corpora.clips
    if task.numbers_in_words is not None:
        clips = with_numbers_in_words(clips, task.numbers_in_words)
    size, starts = min(_MOST_CLIPS, max(_LEAST_CLIPS, len(clips) // _ENOUGH_CHUNKS)), [0]
    offsets = [0]
    with task.path.open("wb") as out:
        for chunk in (clips[start : start + size] for start in range(0, len(clips), size)):
            out.write(pickle.dumps(chunk, pickle.HIGHEST_PROTOCOL))
            starts.append(starts[-1] + len(chunk))
            offsets.append(out.tell())
        for column in digest_columns(task.seed, [clip.id for clip in clips]):
            out.write(column.tobytes())
        out.write(np.array([clip.duplicate for clip in clips], bool).tobytes())
    languages = dict.fromkeys(clip.language for clip in clips if clip.text and not clip.duplicate)
    return Listing(corpora=replace(corpora, clips=[]), starts=starts, offsets=offsets, languages=list(languages))
