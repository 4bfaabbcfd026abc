"""Single clips of a finished cache, read back to be looked at."""

import difflib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from xtts.precompute.features.cached_mels import StoredMels
from xtts.shared.cache.cache_copy import CacheCopy
from xtts.shared.cache.cache_spec import CacheSpec, load_spec, shard_places
from xtts.shared.cache.clip_index import IndexRow, read_index
from xtts.shared.cache.quick_check import shard_problem
from xtts.shared.cache.records import CorruptRecord, Record
from xtts.shared.cache.shard_reader import with_mel
from xtts.shared.errors import LockstepError, repair_command
from xtts.shared.storage.urls import PathOrUrl, path_or_url
from xtts.shared.system.folder_lock import ReadLock
from xtts.shared.text.scripts import JOINERS

_NEAREST = 3


@dataclass(frozen=True, kw_only=True)
class CachedClip:
    """A clip's row of the index, and its record: tokens int64[L] and mel [T, M], padded as stored."""

    row: IndexRow
    record: Record

    @property
    def mel(self) -> np.ndarray:
        """float32[frames, M] without the padding."""
        return self.record.mel[: self.record.mel_length].astype(np.float32)


class CachedClips:
    """A cache whose records are read one at a time."""

    def __init__(self, given: PathOrUrl | str) -> None:
        """A remote cache is copied to a local folder, shard by shard as its clips are read."""
        place = path_or_url(given)
        self._copy = None if isinstance(place, Path) else CacheCopy(place)
        if self._copy:
            self._copy.open()
        self.cache = cache = self._copy.folder if self._copy else Path(str(place))
        self.lock = ReadLock(cache)
        """Keeps the files of the cache, whatever is built there."""
        self.spec: CacheSpec = load_spec(cache)
        self.rows: list[IndexRow] = read_index(cache / self.spec.index_file)
        self._mels = StoredMels(mel_dtype=self.spec.mel_dtype, mel_channels=self.spec.mel_channels)
        self._files = shard_places(self.spec)
        self._shards = {shard.file: shard for shard in self.spec.shards()}

    def row(self, clip_id: str) -> IndexRow:
        """The row of a clip; of a repeated id, the kept one. A `LockstepError` names the nearest ids."""
        found = [row for row in self.rows if row.clip.id == clip_id]
        if not found:
            ids = [row.clip.id for row in self.rows]
            near = difflib.get_close_matches(clip_id, ids, n=_NEAREST) or ids[:_NEAREST]
            expected, index = f"a clip of the cache, such as {', '.join(near)}", self.cache / self.spec.index_file
            raise LockstepError(f"{clip_id!r}", found=f"not in {index}", expected=plain(expected))
        return next((row for row in found if row.is_kept), found[0])

    def read(self, row: IndexRow) -> CachedClip:
        """The record of a kept clip; a `LockstepError` when the cache does not hold it as the index says."""
        file = self._files.get(row.place)
        if file is None:
            raise self._broken(self.spec.index_file, row, "names no record of the cache")
        if self._copy:
            self._copy.fetch([self._shards[file]])
        problem = shard_problem(self.cache, self._shards[file])
        if problem:
            raise self._broken(file, row, problem[0], problem[1])
        record = self._mels.read_record(self.cache / file, row.position, row.clip.id)
        try:
            return CachedClip(row=row, record=with_mel(record, self.spec))
        except CorruptRecord as error:
            raise self._broken(file, row, str(error)) from None

    def _broken(self, file: str, row: IndexRow, found: str, expected: str = "") -> LockstepError:
        where = f"{self.cache / file} ({row.clip.id})"
        return LockstepError(where, found=found, expected=expected, fix=repair_command(self.cache), exit_code=1)


def plain(text: str) -> str:
    """Text from a corpus, fit for a terminal: control characters would move its cursor."""
    return "".join(c if c.isprintable() or c in JOINERS else "\N{REPLACEMENT CHARACTER}" for c in text)
