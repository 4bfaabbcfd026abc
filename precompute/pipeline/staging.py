"""What is already done: shards staged by an interrupted build, and the shards of a finished cache."""

import hashlib
import json
import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from xtts.precompute.features.tables import pack, read_table
from xtts.precompute.workers.stopping import CONTINUE
from xtts.shared.cache.bucket_shapes import BucketShape
from xtts.shared.cache.cache_spec import SPEC_FILE, Bucket, Shard, digest_of, without_digest
from xtts.shared.cache.clip_index import IndexRow, index_schema, table_of
from xtts.shared.errors import LockstepError
from xtts.shared.feature_settings import Features
from xtts.shared.system import atomic_files
from xtts.shared.system.folder_lock import LOCK_FILES

if TYPE_CHECKING:
    import pyarrow as pa

WORK_FOLDER = ".building"
_FACTS = b"shard"
"""Key of the metadata of the rows' Arrow file."""


def shard_settings(
    features: Features, shape: BucketShape | Bucket, speakers: Mapping[str, int], *, tokenizer: str,
    feature_version: int, mel_check: str, index_only: bool,
) -> str:  # fmt: skip
    """Digest of everything but the clips that decides a shard's bytes."""
    fixed = bool(features["shapes"]["pad_to_fixed_length"])
    return digest_of(
        {
            "feature_version": feature_version,
            "mel_check": mel_check,
            "audio": features["audio"],
            "text": {**features["text"], "max_unknown_share": None},  # it decides whether shards are written
            "tokenizer": tokenizer,
            "mel_dtype": features["shards"]["mel_dtype"],
            "shape": [shape.tokens, shape.frames] if fixed else None,
            "speakers": dict(speakers),
            **({"index_only": True} if index_only else {}),
        }
    )


@dataclass(frozen=True, kw_only=True)
class Finished:
    """A shard that exists, with what decided its bytes."""

    shard: Shard
    """As `cache.json` will list it."""
    settings: str
    """Digest of all that decides the shard's bytes besides its clips."""
    clips: str
    """Digest of the packed rows of its clips, as the scan found them."""

    def holding(self, clips: "pa.Table", settings: str) -> Shard | None:
        """The shard if it was written of these clips with these settings."""
        same = (self.settings, self.clips) == (settings, hashlib.sha256(pack(clips)).hexdigest())
        return self.shard if same else None


def rows_beside(shard: Path) -> Path:
    """Where the rows of a shard lie, wherever the shard does."""
    return shard.with_suffix(".arrow")


def write_rows(shard: Path, done: Finished, rows: Sequence[IndexRow]) -> None:
    """Write the rows of a shard beside it: its clips in order, those included that were rejected by writing it."""
    facts = {"shard": done.shard.model_dump(), "settings": done.settings, "clips": done.clips}
    metadata = {_FACTS: json.dumps(facts).encode()}
    rows_beside(shard).write_bytes(pack(table_of(rows).replace_schema_metadata(metadata)))


def read_finished(path: Path) -> Finished | None:
    """What such a file says of its shard; None where there is none that can be read: the shard is an unfinished one."""
    import pyarrow as pa

    try:
        table = read_table(path)
        known = table.schema.equals(index_schema(), check_metadata=False)
        facts = json.loads(table.schema.metadata[_FACTS])
        return Finished(**{**facts, "shard": Shard(**facts["shard"])}) if known else None
    except (OSError, ValueError, TypeError, KeyError, RecursionError, pa.ArrowException):
        return None


class StagingArea:
    """The folder inside a cache where shards wait until all of them are there."""

    def __init__(self, cache: Path, scratch: Path | None = None) -> None:
        """scratch: another folder for that, where a cache must not be touched."""
        self.cache, self._scratch = cache, scratch
        self._root = cache / WORK_FOLDER
        self._all_scratch = self._root / "scratch"
        self._build = uuid4().hex[:12]

    def open(self, *, fresh: bool) -> None:
        """Create the folder; drop what a killed build left half written, or everything."""
        shutil.rmtree(self._root if fresh else self._all_scratch, ignore_errors=True)
        self.scratch.mkdir(parents=True, exist_ok=True)

    def remove(self) -> None:
        """Drop the folder after the cache is complete."""
        shutil.rmtree(self._root, ignore_errors=True)

    @property
    def scratch(self) -> Path:
        """Folder of what an interrupted build does not keep; another one each time.

        Where this process was killed, a worker on another machine may go on for a moment: it does not find it.
        """
        return self._scratch or (self._all_scratch / self._build).absolute()

    def unfinished(self, file: str) -> Path:
        """Path beside which a worker writes a shard, each attempt under a name of its own."""
        return self.scratch / file.replace("/", "-")

    def staged(self, file: str) -> Path:
        """Where a finished file waits."""
        return self._root / file

    def stage(self, path: Path, *, from_elsewhere: bool) -> Shard:
        """Make a written shard durable, and only then say so by its rows.

        A worker of this machine leaves the sync to us, and goes on. Where it may be `from_elsewhere`, the worker synced
        it, and its digest is compared.
        """
        rows = rows_beside(path)
        done = read_finished(rows)
        shard = done and done.shard
        if not shard or size_of(path) != shard.bytes or (from_elsewhere and file_sha256(path) != shard.sha256):
            found = "not what a worker wrote, or not all of it"
            raise LockstepError(str(path), found=found, fix=f"check the disk, then {CONTINUE}", exit_code=1)
        for written in () if from_elsewhere else (path, rows):
            atomic_files.sync_file(written)
        waiting = rows_beside(self.staged(without_digest(shard.file)))
        waiting.unlink(missing_ok=True)
        # Rows whose shard the power cut took are no harm: `finished` looks for both.
        atomic_files.move_all([(path, self.staged(shard.file)), (rows, waiting)])
        return shard

    def rows(self, file: str) -> "pa.Table":
        """Rows of a staged shard, as its worker wrote them; file: its name without digest."""
        return read_table(rows_beside(self.staged(file))).replace_schema_metadata(None)

    def finished(self, exclude: Collection[str] = ()) -> dict[str, Finished]:
        """Shards by name without digest: those staged, and those that an interrupted commit already moved.

        exclude: files of which none is taken.
        """
        found = {}
        for rows in sorted(self._root.glob("*/bucket-*/shard-*.arrow")):
            done = read_finished(rows)
            if done is None or done.shard.file in exclude:
                continue
            if done.shard.bytes in (size_of(self.staged(done.shard.file)), size_of(self.cache / done.shard.file)):
                found[without_digest(done.shard.file)] = done
        return found


def file_sha256(path: Path) -> str:
    """Digest of a file's content; a `LockstepError` where it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise LockstepError(str(path), found=f"cannot be read ({error})", exit_code=1) from None


def size_of(path: Path) -> int | None:
    """Bytes of a file, or None where there is none."""
    try:
        return path.stat().st_size
    except OSError:
        return None


def refuse_foreign_folder(cache: Path) -> None:
    """Raise when `cache` is a folder of something else, which a build would litter."""
    if cache.exists() and not cache.is_dir():
        raise LockstepError(str(cache), found="a file", expected="a folder for the cache")
    there = {path.name for path in cache.iterdir()} if cache.is_dir() else set[str]()
    if there - set(LOCK_FILES) and not there & {SPEC_FILE, WORK_FOLDER}:
        raise LockstepError(
            str(cache), found="a folder with other things in it", expected="an empty or new folder, or a cache"
        )
