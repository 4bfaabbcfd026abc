"""The staging area of a build, and the shards that an interrupted build left there."""

import hashlib
import json
import shutil
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pyarrow as pa

from xtts.precompute.corpus.clip_audio import size_and_time
from xtts.precompute.features.tables import pack, read_table
from xtts.precompute.workers.stopping import CONTINUE
from xtts.shared.cache.cache_spec import SPEC_FILE, Shard, without_digest
from xtts.shared.cache.clip_index import IndexRow, index_schema, table_of
from xtts.shared.cache.quick_check import file_sha256
from xtts.shared.errors import LockstepError
from xtts.shared.system import atomic_files
from xtts.shared.system.folder_lock import LOCK_FILES

WORK_FOLDER = ".building"
_METADATA_KEY = b"shard"
"""Key in the metadata of the Arrow file with a shard's rows."""


@dataclass(frozen=True, kw_only=True)
class Finished:
    """A shard that was written."""

    shard: Shard
    """Entry of the shard in the future `cache.json`."""
    clips: str
    """Digest of the packed rows of its clips after the scan."""

    def holding(self, clips: pa.Table, settings: str) -> Shard | None:
        """Return the shard if it was written from these clips with these settings."""
        same = (self.shard.settings, self.clips) == (settings, hashlib.sha256(pack(clips)).hexdigest())
        return self.shard if same else None


def rows_beside(shard: Path) -> Path:
    """Path of the rows of a shard."""
    return shard.with_suffix(".arrow")


def write_rows(shard: Path, finished: Finished, rows: Sequence[IndexRow]) -> None:
    """Write the rows of a shard beside it: its clips in order, with those that were rejected while it was written."""
    fields = {"shard": finished.shard.model_dump(), "clips": finished.clips}
    metadata = {_METADATA_KEY: json.dumps(fields).encode()}
    rows_beside(shard).write_bytes(pack(table_of(rows).replace_schema_metadata(metadata)))


def read_finished(path: Path) -> Finished | None:
    """Read the description of a shard from its file of rows; None if unreadable: then the shard is not finished."""
    try:
        table = read_table(path)
        has_columns = table.schema.equals(index_schema(), check_metadata=False)
        fields = json.loads(table.schema.metadata[_METADATA_KEY])
        return Finished(**{**fields, "shard": Shard(**fields["shard"])}) if has_columns else None
    except (OSError, ValueError, TypeError, KeyError, RecursionError, pa.ArrowException):
        return None


class StagingArea:
    """The folder in a cache that holds new shards until all are finished."""

    def __init__(self, cache: Path, scratch: Path | None = None) -> None:
        """scratch: another scratch folder, if the cache must not be touched."""
        self.cache, self._root = cache, cache / WORK_FOLDER
        self._all_scratch = self._root / "scratch"
        self.scratch = scratch or (self._all_scratch / uuid4().hex[:12]).absolute()
        """Folder of files that an interrupted build discards; a different one for each build.

        So a worker on another machine, which outlives a killed build for a moment, cannot disturb the next build.
        """

    def open(self, *, fresh: bool) -> None:
        """Create the folder; remove half written files of a killed build, or with `fresh` all files."""
        shutil.rmtree(self._root if fresh else self._all_scratch, ignore_errors=True)
        self.scratch.mkdir(parents=True, exist_ok=True)

    def remove(self) -> None:
        """Remove the folder after the cache is complete."""
        shutil.rmtree(self._root, ignore_errors=True)

    def staged(self, file: str) -> Path:
        """Path of a finished file in the staging area."""
        return self._root / file

    def stage(self, path: Path, *, from_elsewhere: bool) -> Shard:
        """Make a written shard durable, then mark it as finished by its rows.

        Workers of this machine leave the sync to this process. from_elsewhere: a worker of another machine may have
        written and synced the shard, so its digest is compared.
        """
        rows = rows_beside(path)
        finished = read_finished(rows)
        shard = finished and finished.shard
        if not shard or size_and_time(path)[0] != shard.bytes or (from_elsewhere and file_sha256(path) != shard.sha256):
            problem = "not what a worker wrote, or not all of it"
            raise LockstepError(str(path), found=problem, fix=f"check the disk, then {CONTINUE}", exit_code=1)
        for written in () if from_elsewhere else (path, rows):
            atomic_files.sync_file(written)
        staged_rows = rows_beside(self.staged(without_digest(shard.file)))
        staged_rows.unlink(missing_ok=True)
        # Rows without their shard, after a power cut, do no harm: `finished` looks for both.
        atomic_files.move((path, self.staged(shard.file)), (rows, staged_rows))
        return shard

    def rows(self, file: str) -> pa.Table:
        """Rows of a staged shard, as its worker wrote them; file: its name without digest."""
        return read_table(rows_beside(self.staged(file))).replace_schema_metadata(None)

    def finished(self, exclude: Collection[str] = ()) -> dict[str, Finished]:
        """Finished shards by file without digest: staged ones, and those that an interrupted commit already moved.

        exclude: files to ignore.
        """
        shards = {}
        for rows in sorted(self._root.glob("*/bucket-*/shard-*.arrow")):
            finished = read_finished(rows)
            if finished is None or finished.shard.file in exclude:
                continue
            file = finished.shard.file
            if finished.shard.bytes in (size_and_time(path)[0] for path in (self.staged(file), self.cache / file)):
                shards[without_digest(file)] = finished
        return shards


def refuse_foreign_folder(cache: Path) -> None:
    """Raise `LockstepError` if `cache` is a folder with other things, which a build would litter."""
    if cache.exists() and not cache.is_dir():
        raise LockstepError(str(cache), found="a file", expected="a folder for the cache")
    names = {path.name for path in cache.iterdir()} if cache.is_dir() else set[str]()
    if names - set(LOCK_FILES) and not names & {SPEC_FILE, WORK_FOLDER}:
        raise LockstepError(
            str(cache), found="a folder with other files in it", expected="an empty or new folder, or a cache"
        )
