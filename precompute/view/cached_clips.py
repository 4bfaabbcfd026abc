"""Reading single clips of a finished cache."""

import difflib
from pathlib import Path

from xtts.precompute.features.cached_mels import StoredMels
from xtts.shared.cache.cache_copy import CacheCopy
from xtts.shared.cache.cache_spec import CacheSpec, load_spec, shard_files
from xtts.shared.cache.clip_index import IndexRow, read_index
from xtts.shared.cache.quick_check import shard_problem
from xtts.shared.cache.records import CorruptRecord, Record
from xtts.shared.cache.shard_reader import with_mel
from xtts.shared.errors import LockstepError, repair_command
from xtts.shared.storage.urls import PathOrUrl, path_or_url
from xtts.shared.system.folder_lock import ReadLock
from xtts.shared.text.scripts import JOINERS

_NEAREST = 3


class CachedClips:
    """A cache whose records are read one at a time."""

    def __init__(self, cache: PathOrUrl | str) -> None:
        """Open a cache; the shards of a remote one are copied to a local folder when their clips are read."""
        source = path_or_url(cache)
        self._copy = None if isinstance(source, Path) else CacheCopy(source)
        if self._copy:
            self._copy.open()
        self.cache = cache = self._copy.folder if self._copy else Path(str(source))
        self.lock = ReadLock(cache)
        """Keeps builds from deleting files of the cache."""
        self.spec: CacheSpec = load_spec(cache)
        self.rows: list[IndexRow] = read_index(cache / self.spec.index_file)
        self._mels = StoredMels(mel_dtype=self.spec.mel_dtype, mel_channels=self.spec.mel_channels)
        self._files = shard_files(self.spec)
        self._shards = {shard.file: shard for shard in self.spec.shards()}

    def row(self, clip_id: str) -> IndexRow:
        """Return the row of a clip, of a repeated id the kept one; raise a `LockstepError` that lists similar ids."""
        rows = [row for row in self.rows if row.clip.id == clip_id]
        if not rows:
            ids = [row.clip.id for row in self.rows]
            near = difflib.get_close_matches(clip_id, ids, n=_NEAREST) or ids[:_NEAREST]
            expected, index = f"a clip of the cache, such as {', '.join(near)}", self.cache / self.spec.index_file
            raise LockstepError(f"{clip_id!r}", found=f"not in {index}", expected=plain(expected))
        return next((row for row in rows if row.is_kept), rows[0])

    def read(self, row: IndexRow) -> Record:
        """Read the record of a kept clip; raise a `LockstepError` if the cache does not match the index."""
        file = self._files.get(row.shard_id)
        if file is None:
            raise self._broken(self.spec.index_file, row, "names no record of the cache")
        if self._copy:
            self._copy.fetch([self._shards[file]])
        problem = shard_problem(self.cache, self._shards[file])
        if problem:
            raise self._broken(file, row, problem[0], problem[1])
        record = self._mels.read_record(self.cache / file, row.position, row.clip.id)
        try:
            return with_mel(record, self.spec)
        except CorruptRecord as error:
            raise self._broken(file, row, str(error)) from None

    def _broken(self, file: str, row: IndexRow, problem: str, expected: str = "") -> LockstepError:
        clip, fix = f"{self.cache / file} ({row.clip.id})", repair_command(self.cache)
        return LockstepError(clip, found=problem, expected=expected, fix=fix, exit_code=1)


def plain(text: str) -> str:
    """Return text with control characters replaced, which could move a terminal's cursor."""
    return "".join(c if c.isprintable() or c in JOINERS else "\N{REPLACEMENT CHARACTER}" for c in text)
