"""What is already done: shards staged by an interrupted build, and the shards of a finished cache."""

import hashlib
import json
import shutil
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from xtts.precompute.build.extract import ShardResult
from xtts.precompute.build.scan import Scanned, same_file
from xtts.precompute.build.shard_plan import ShardPlan, clip_digest
from xtts.shared.audio.mel import FRONT_END
from xtts.shared.audio.signal_quality import SignalQuality
from xtts.shared.cache.bucket_shapes import Shape
from xtts.shared.cache.cache_spec import INDEX_FILE, CacheSpec, digest_of, load_spec, shard_places
from xtts.shared.cache.clip_index import (
    Clip,
    IndexRow,
    Kept,
    Place,
    Rejection,
    Written,
    from_columns,
    iter_index,
    to_columns,
)
from xtts.shared.errors import LockstepError
from xtts.shared.feature_settings import feature_differences, with_defaults
from xtts.shared.system import atomic_files

WORK_FOLDER = ".building"


@dataclass(frozen=True, kw_only=True)
class Finished:
    """A shard that exists, with all that decided its bytes."""

    file: str
    settings: str
    records: int
    bytes: int
    sha256: str
    rows: list[IndexRow]
    """Its clips in order, those included that were rejected while it was written."""
    bytes_with_mels: int = 0
    """As the cache spec has it."""

    def holds(self, plan: ShardPlan, settings: str) -> bool:
        """Whether writing `plan` now would give these very bytes."""
        same_clips = len(self.rows) == len(plan.clips) and all(map(_same_clip, plan.clips, self.rows))
        return same_clips and self.settings == settings


def _same_clip(row: Scanned, other: IndexRow) -> bool:
    if other.tokens is None or other.audio is None:
        return False
    facts = [(r.id, r.speaker, r.text, r.language) for r in (row.clip, other.clip)]
    lengths = (row.tokens.token_length, row.audio.mel_length) == (other.tokens.token_length, other.audio.mel_length)
    return facts[0] == facts[1] and lengths and same_file(row, other)


def written_row(row: Scanned, place: Place, outcome: Written | Rejection, quality: SignalQuality | None) -> IndexRow:
    """The ledger's row of a clip after writing its shard, where its quality may have been measured."""
    if isinstance(outcome, Written):
        return Kept(
            clip=row.clip, file=row.file, tokens=row.tokens, audio=row.audio, place=place, written=outcome,
            quality=quality or row.quality,
        )  # fmt: skip
    return row.rejected(outcome, place)


def shard_settings(
    features: Mapping[str, Mapping[str, Any]],
    *,
    shape: Shape,
    speakers: Mapping[str, int],
    tokenizer: str,
    front_end: str,
    index_only: bool,
) -> str:
    """Digest of everything but the clips that decides a shard's bytes."""
    fixed = bool(features["shapes"]["pad_to_fixed_length"])
    return digest_of(
        {
            "front_end": front_end,
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
class Prior:
    """The finished cache that is already there."""

    spec: CacheSpec
    rows: list[IndexRow]
    shards: dict[str, Finished]

    def same_settings(self, features: Mapping[str, Mapping[str, Any]], *sections: str) -> bool:
        """Whether it was built with the same settings in these sections, by the same front end."""
        same_front_end = self.spec.versions.get("front_end") == str(FRONT_END)
        wanted = {name: features[name] for name in sections}
        return same_front_end and not feature_differences(self.spec.features, wanted)


def load_prior(cache: Path, known: Iterable[Clip]) -> Prior:
    """Read a finished cache; a `LockstepError` when it cannot be continued.

    Rows of clips that have not changed refer to those that are `known`, so that their texts are in memory once.
    """
    spec = load_spec(cache)
    spec = spec.model_copy(update={"features": with_defaults(spec.features)})
    clips = {clip.id: clip for clip in known if not clip.duplicate}
    rows = [_refer(row, clips.get(row.clip.id)) for row in iter_index(cache / INDEX_FILE)]
    if hashlib.sha256((cache / INDEX_FILE).read_bytes()).hexdigest() != spec.index_sha256:
        raise LockstepError(str(cache / INDEX_FILE), found="other content than when it was written", exit_code=1)
    return Prior(spec=spec, rows=rows, shards=_finished_shards(spec, rows))


def _refer(row: IndexRow, clip: Clip | None) -> IndexRow:
    return replace(row, clip=clip) if clip is not None and clip == row.clip else row


def _finished_shards(spec: CacheSpec, rows: Iterable[IndexRow]) -> dict[str, Finished]:
    seed = int(spec.features["split"]["seed"])
    members: dict[Place | None, list[IndexRow]] = defaultdict(list)
    for row in rows:
        members[row.place].append(row)
    found, places = {}, {file: place for place, file in shard_places(spec).items()}
    for bucket in spec.buckets:
        shape = Shape(tokens=bucket.tokens, frames=bucket.frames)
        for shard in (*bucket.train, *bucket.validation):
            place = places[shard.file]
            clips = sorted(members[place], key=lambda row: clip_digest(seed, row.clip.id))
            found[shard.file] = Finished(**shard.model_dump(), settings=_settings_of(spec, shape, clips), rows=clips)
    return found


def _settings_of(spec: CacheSpec, shape: Shape, clips: list[IndexRow]) -> str:
    return shard_settings(
        spec.features,
        shape=shape,
        speakers={name: spec.speakers.index(name) for name in {row.clip.speaker for row in clips} & set(spec.speakers)},
        tokenizer=spec.tokenizer_sha256,
        front_end=spec.versions.get("front_end", ""),
        index_only=spec.names_audio,
    )


class StagingArea:
    """The folder inside a cache where shards wait until all of them are there."""

    def __init__(self, cache: Path) -> None:
        self._cache = cache
        self._root = cache / WORK_FOLDER

    def open(self, *, fresh: bool) -> None:
        """Create the folder; drop what a killed worker left half written, or everything."""
        shutil.rmtree(self._root if fresh else self.parts, ignore_errors=True)
        self.parts.mkdir(parents=True, exist_ok=True)

    def remove(self) -> None:
        """Drop the folder after the cache is complete."""
        shutil.rmtree(self._root, ignore_errors=True)

    @property
    def parts(self) -> Path:
        """Folder of what an interrupted build does not keep."""
        return self._root / "parts"

    def part(self, file: str) -> Path:
        """Where a worker writes a shard."""
        return self.parts / file.replace("/", "-")

    def staged(self, file: str) -> Path:
        """Where a finished shard waits."""
        return self._root / file

    def stage(self, result: ShardResult, rows: list[IndexRow], settings: str) -> Finished:
        """Make a written shard durable, and only then say so in its sidecar."""
        records = sum(isinstance(row, Kept) for row in rows)
        done = Finished(
            file=result.file, settings=settings, records=records, bytes=result.bytes, sha256=result.sha256, rows=rows,
            bytes_with_mels=result.bytes_with_mels,
        )  # fmt: skip
        target = self.staged(done.file)
        target.with_suffix(".json").unlink(missing_ok=True)
        atomic_files.sync_file(result.path)
        atomic_files.move(result.path, target)
        atomic_files.write(target.with_suffix(".json"), _sidecar_bytes(done))
        return done

    def finished(self, *, committing: bool) -> dict[str, Finished]:
        """Staged shards; where a commit was interrupted, also those that already moved to their place."""
        found = {}
        for sidecar in sorted(self._root.glob("*/bucket-*/shard-*.json")):
            done = _read_sidecar(sidecar)
            if done is None:
                continue
            places = [self.staged(done.file), *([self._cache / done.file] if committing else [])]
            if any(size_of(place) == done.bytes for place in places):
                found[done.file] = done
        return found


def size_of(path: Path) -> int | None:
    """Bytes of a file, or None where there is none."""
    try:
        return path.stat().st_size
    except OSError:
        return None


def _sidecar_bytes(done: Finished) -> bytes:
    content = {field.name: getattr(done, field.name) for field in fields(Finished)}
    return json.dumps({**content, "rows": to_columns(done.rows)}).encode()


def _read_sidecar(path: Path) -> Finished | None:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return Finished(**{**content, "rows": from_columns(content["rows"])})
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None  # a shard without a readable sidecar is an unfinished shard


def refuse_foreign_folder(cache: Path) -> None:
    """Raise when `cache` is a folder of something else, which a build would litter."""
    if cache.exists() and not cache.is_dir():
        raise LockstepError(str(cache), found="a file", expected="a folder for the cache")
    if (
        cache.is_dir()
        and any(cache.iterdir())
        and not any((cache / name).exists() for name in ("cache.json", WORK_FOLDER))
    ):
        raise LockstepError(
            str(cache), found="a folder with other things in it", expected="an empty or new folder, or a cache"
        )
