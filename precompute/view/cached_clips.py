"""Reading single clips of a finished cache."""

import difflib
from pathlib import Path

from xtts.precompute.corpus.clip_fields import CONTROLS
from xtts.shared.cache.cache_spec import CacheSpec, load_spec, shard_id_of
from xtts.shared.cache.clip_index import IndexRow, read_index
from xtts.shared.cache.records import Record
from xtts.shared.cache.shard_reader import RecordReader
from xtts.shared.errors import LockstepError
from xtts.shared.system.folder_lock import ReadLock

_NEAREST = 3


class CachedClips:
    """A cache whose records are read one at a time."""

    def __init__(self, cache: Path) -> None:
        self.cache = cache
        self.lock = ReadLock(cache)
        """Keeps builds from deleting files of the cache."""
        self.spec: CacheSpec = load_spec(cache)
        self.rows: list[IndexRow] = read_index(cache / self.spec.index_file)
        self._reader = RecordReader(mel_dtype=self.spec.mel_dtype, mel_channels=self.spec.mel_channels)
        self._shards = {shard_id_of(shard.file): shard for shard in self.spec.shards()}

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
        shard = self._shards[row.shard_id]
        return self._reader.read(self.cache / shard.file, row.position, row.clip.id)


def plain(text: str) -> str:
    """Return text with control characters replaced, which could move a terminal's cursor."""
    return CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text)
