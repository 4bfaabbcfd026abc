"""What earlier builds left: rows of the clips, and finished shards. The rows are found by the ids of the clips."""

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from xtts.precompute.build.build_request import BuildRequest
from xtts.precompute.build.commit import tokenizer_bytes
from xtts.precompute.build.shard_plan import ShardPlan
from xtts.precompute.build.staging import StagingArea, file_sha256, same_settings, size_of
from xtts.precompute.features.cached_mels import STORED_FACTS, StoredClips
from xtts.precompute.features.finished_shard import Finished
from xtts.precompute.features.scan import SAME_CLIP, SAME_FILE
from xtts.precompute.features.tables import pack
from xtts.shared.cache.cache_spec import SPEC_FILE, CacheSpec, Shard, load_spec, shard_place, without_digest
from xtts.shared.cache.clip_index import QUALITIES, ShardPlace, index_schema, readable_index, with_column
from xtts.shared.errors import LockstepError
from xtts.shared.feature_settings import Features

_PLACE = ["split", "bucket", "shard", "corpus"]
_OUTCOME = [
    "status", "reason", "detail", "split", "bucket", "shard", "position", "audio_sha256", "record_sha256", "mel_sum",
    "mel_square_sum", *QUALITIES,
]  # fmt: skip
"""Columns that writing a shard decides."""


@dataclass(kw_only=True)
class PreviousRows:
    """Rows that an earlier build left, and how N clips of this one match them."""

    rows: Any
    """An Arrow table with the columns of an index, without lines whose id was there before."""
    finished: Mapping[str, Shard]
    """Its shards that can be used, by file name without digest."""
    found: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    """int64[N]: row of each clip, -1 for none."""
    same: np.ndarray = field(default_factory=lambda: np.zeros(0, np.uint8))
    """uint8[N]: what of it is as it was there: `SAME_AUDIO` and so on."""

    def find(self, clips: Any) -> None:  # noqa: ANN401 - pyarrow ships no types
        """Find the rows of the clips of a table; a line whose id was there before has none."""
        import pyarrow as pa
        import pyarrow.compute as pc

        ids = pc.if_else(clips["duplicate"], pa.scalar(None, clips["id"].type), clips["id"])
        found = pc.index_in(ids, value_set=self.rows["id"].combine_chunks(), skip_nulls=True)
        self.found = found.fill_null(-1).to_numpy().astype(np.int64)
        self.same = np.zeros(len(self.found), np.uint8)

    def known(self, start: int, end: int) -> tuple[np.ndarray, bytes]:
        """Which of the clips from one number to another have rows, by place among these, and the packed rows."""
        places = np.flatnonzero(self.found[start:end] >= 0)
        return places, pack(self.rows.take(self.found[start:end][places]))

    @cached_property
    def _sizes(self) -> Counter[ShardPlace]:
        counted = self.rows.select(_PLACE).group_by(_PLACE).aggregate([([], "count_all")])
        return Counter({ShardPlace(*row[:4]): row[4] for row in zip(*counted.to_pydict().values(), strict=True)})

    def holds(self, shard: ShardPlan) -> bool:
        """Whether the shard of this place holds just the clips of this one, in this order."""
        found = self.found[shard.clips]
        if self._sizes[shard.place] != len(found) or (found < 0).any():
            return False
        rows = self.rows.select([*_PLACE, "position"]).take(found)
        places = set(zip(*rows.select(_PLACE).to_pydict().values(), strict=True))
        positions = rows["position"].to_numpy()
        in_order = (np.diff(positions[positions >= 0]) > 0).all()
        return bool(places == {shard.place} and in_order and (self.same[shard.clips] & SAME_CLIP).all())

    def outcome(self, shard: ShardPlan) -> Any:  # noqa: ANN401
        """What was written of a shard's clips: the columns of `_OUTCOME`."""
        return self.rows.select(_OUTCOME).take(self.found[shard.clips])

    def stored(self, shard: ShardPlan, files: Mapping[ShardPlace, Path]) -> StoredClips:
        """The mels of a shard's clips that lie in these shards."""
        rows = self.found[shard.clips]
        places = np.flatnonzero((rows >= 0) & (self.same[shard.clips] & SAME_FILE != 0))
        table = self.rows.select(STORED_FACTS).take(rows[places])
        held = [ShardPlace(*row) for row in zip(*table.select(_PLACE).to_pydict().values(), strict=True)]
        there = np.array([place in files for place in held], bool)
        used = {place: files[place] for place in {*held} & files.keys()}
        return StoredClips(places=places[there], rows=pack(table.filter(there)), files=used)


def rows_now(clips: Any, earlier: Any) -> Any:  # noqa: ANN401
    """The rows of a kept shard: what was written of its clips, with paths, times and notes of today."""
    for name in _OUTCOME:
        clips = with_column(clips, name, earlier[name])
    return clips


@dataclass(frozen=True, kw_only=True)
class Existing:
    """All that earlier builds left."""

    previous: CacheSpec | None
    """Of the finished cache."""
    cached: PreviousRows
    """Of the finished cache."""
    staged: Mapping[str, Finished]
    """Shards of an interrupted build by file name without digest, which are newer."""
    same_audio: bool
    """The finished cache was built with the same settings of audio."""
    same_text: bool
    """And of text, and with the same tokenizer."""
    lines: list[str]

    @property
    def mel_check(self) -> str | None:
        """Of the finished cache, if its mels are of the same audio settings."""
        return self.previous.mel_check if self.previous is not None and self.same_audio else None

    def stored_files(self, request: BuildRequest) -> dict[ShardPlace, Path]:
        """The shards of the finished cache whose mels are what decoding the audio again would give."""
        previous, extractor = self.previous, request.extractor
        if previous is None or not self.same_audio or extractor.index_only or previous.names_audio:
            return {}
        if previous.mel_dtype != extractor.config.shards.mel_dtype:
            return {}
        paths = {slot: request.cache / shard.file for slot, shard in self.cached.finished.items()}
        there = (slot for slot, path in paths.items() if size_of(path) == self.cached.finished[slot].bytes)
        return {shard_place(slot): paths[slot].absolute() for slot in there}


def look_back(request: BuildRequest, staging: StagingArea, features: Features) -> Existing:
    """Collect what there is; nothing of it for a fresh build."""
    cache, previous, lines, cached = request.cache, None, list[str](), index_schema().empty_table()
    if not request.fresh and (cache / SPEC_FILE).exists():
        try:
            previous = load_spec(cache)
            cached = _read_index(cache, previous)
        except LockstepError as error:  # without the index its plan still holds
            lines = [f"{error.where}: {error.found}: the whole cache is built again"]
    finished = {} if request.fresh else staging.finished(request.exclude)
    wanted = previous.shards() if previous and not lines else []
    reusable = {
        without_digest(shard.file): shard
        for shard in wanted
        if shard.file not in request.exclude and staging.committed_size(shard.file) == shard.bytes
    }
    new = {done.shard.file for done in finished.values()} - {shard.file for shard in reusable.values()}
    if new:
        lines.append(f"an interrupted build left {len(new)} finished shards")
    same_audio, same_text = (bool(previous and same_settings(previous, features, name)) for name in ("audio", "text"))
    tokenizer = hashlib.sha256(tokenizer_bytes(request.extractor.tokenizer)).hexdigest()
    same_text = same_text and previous is not None and previous.tokenizer_sha256 == tokenizer
    return Existing(
        previous=previous,
        cached=PreviousRows(rows=_once(cached), finished=reusable), staged=finished,
        same_audio=same_audio, same_text=same_text, lines=lines,
    )  # fmt: skip


def _read_index(cache: Path, spec: CacheSpec) -> Any:  # noqa: ANN401
    path = cache / spec.index_file
    if file_sha256(path) != spec.index_sha256:
        raise LockstepError(str(path), found="other content than when it was written", exit_code=1)
    with readable_index(path) as file:
        return file.read()


def _once(rows: Any) -> Any:  # noqa: ANN401
    """Without rows of repeated ids, in one piece."""
    import pyarrow.compute as pc

    repeated = rows["duplicate"]
    return (rows.filter(pc.invert(repeated)) if pc.any(repeated).as_py() else rows).combine_chunks()
