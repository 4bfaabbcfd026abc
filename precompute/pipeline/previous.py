"""The cache that the last build finished, opened once: its rows, tokenizer and shards, which a build reuses."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from xtts.precompute.features.cached_mels import STORED_FACTS, StoredClips
from xtts.precompute.features.scan import SAME_CLIP, SAME_FILE
from xtts.precompute.features.tables import pack
from xtts.precompute.pipeline.shard_plan import ShardPlan
from xtts.precompute.pipeline.staging import file_sha256, shard_settings, size_of
from xtts.shared.audio.mel import FEATURE_VERSION
from xtts.shared.cache.cache_spec import SPEC_FILE, CacheSpec, Shard, load_spec, shard_place, without_digest
from xtts.shared.cache.clip_index import QUALITIES, ShardPlace, index_schema, readable_index, with_column
from xtts.shared.errors import LockstepError
from xtts.shared.feature_settings import Features, feature_differences
from xtts.shared.text.tokenizer import Tokenizer, load_tokenizer

if TYPE_CHECKING:
    import pyarrow as pa

_PLACE = ["split", "bucket", "shard", "corpus"]
_OUTCOME = [
    "status", "reason", "detail", "split", "bucket", "shard", "position", "audio_sha256", "record_sha256", "mel_sum",
    "mel_square_sum", *QUALITIES,
]  # fmt: skip
"""Columns that writing a shard decides."""


@dataclass(kw_only=True)
class PreviousCache:
    """A finished cache, and which of its rows the N clips of this build have; empty if nothing of it can be reused."""

    spec: CacheSpec | None = None
    tokenizer: Tokenizer | None = None
    """None if its file is damaged."""
    rows: "pa.Table" = field(default_factory=lambda: index_schema().empty_table())
    """Its index without repeated ids; empty if the file is damaged."""
    problem: str = ""
    """What is damaged, as a line for the user."""
    shards: Mapping[str, Shard] = field(default_factory=dict)
    """Reusable shards by file name without digest, see `find_shards`."""
    row_of_clip: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    """int64[N]: row of each clip, -1 for none; see `find_rows`."""
    unchanged: np.ndarray = field(default_factory=lambda: np.zeros(0, np.uint8))
    """uint8[N]: flags `SAME_AUDIO` and so on."""

    def has_settings(self, features: Features, *sections: str) -> bool:
        """Whether it was built with these settings in these sections, by the same version of the feature extractor."""
        if self.spec is None or self.spec.feature_version != FEATURE_VERSION:
            return False
        return not feature_differences(self.spec.features, {name: features[name] for name in sections})

    def find_shards(self, folder: Path, exclude: Collection[str]) -> None:
        """Fill `shards` with those in the cache's folder that have the right size; exclude: files to ignore."""
        listed = self.spec.shards() if self.spec and not self.problem else []
        present = (shard for shard in listed if size_of(folder / shard.file) == shard.bytes)
        self.shards = {without_digest(shard.file): shard for shard in present if shard.file not in exclude}

    def find_rows(self, clips: "pa.Table") -> None:
        """Fill `row_of_clip` by the ids of clips; a clip whose id occurred before has no row."""
        import pyarrow as pa
        import pyarrow.compute as pc

        ids = pc.if_else(clips["duplicate"], pa.scalar(None, clips["id"].type), clips["id"])
        rows = pc.index_in(ids, value_set=self.rows["id"].combine_chunks(), skip_nulls=True)
        self.row_of_clip = rows.fill_null(-1).to_numpy().astype(np.int64)
        self.unchanged = np.zeros(len(self.row_of_clip), np.uint8)

    def rows_between(self, start: int, end: int) -> tuple[np.ndarray, bytes]:
        """Of the clips [start, end) those with rows, as offsets from `start`, and these rows, packed."""
        offsets = np.flatnonzero(self.row_of_clip[start:end] >= 0)
        return offsets, pack(self.rows.take(self.row_of_clip[start:end][offsets]))

    def knows(self, clips: "pa.Table", main_language: str) -> "pa.Array[Any]":
        """bool[N]: whether the text of each clip was in the cache, in the same language."""
        import pyarrow as pa
        import pyarrow.compute as pc

        separator = pa.scalar("|", pa.large_string())
        said = [
            pc.binary_join_element_wise(languages_of(table, main_language), table["text"], separator)
            for table in (clips, self.rows)
        ]
        known: pa.Array[Any] = pc.is_in(said[0], value_set=said[1].combine_chunks())
        return known

    @cached_property
    def _clips_in_shard(self) -> Counter[ShardPlace]:
        counted = self.rows.select(_PLACE).group_by(_PLACE).aggregate([([], "count_all")])
        return Counter({ShardPlace(*row[:4]): row[4] for row in zip(*counted.to_pydict().values(), strict=True)})

    def reusable(self, shard: ShardPlan, speakers: Mapping[str, int], settings: str) -> Shard | None:
        """The shard that holds just these clips, unchanged and in this order, and was written with these settings."""
        finished, rows = self.shards.get(shard.file), self.row_of_clip[shard.clips]
        if finished is None or self._clips_in_shard[shard.place] != len(rows) or (rows < 0).any():
            return None
        table = self.rows.select([*_PLACE, "position"]).take(rows)
        shards = set(zip(*table.select(_PLACE).to_pydict().values(), strict=True))
        positions = table["position"].to_numpy()
        in_order = (np.diff(positions[positions >= 0]) > 0).all()
        unchanged = (self.unchanged[shard.clips] & SAME_CLIP).all()
        same = shards == {shard.place} and in_order and unchanged
        return finished if same and self._settings_of(shard.place.bucket, speakers) == settings else None

    def _settings_of(self, bucket: int, speakers: Mapping[str, int]) -> str:
        """`shard_settings` of a shard of a bucket whose clips have these speakers."""
        assert self.spec is not None
        ids = {name: number for number, name in enumerate(self.spec.speakers) if name in speakers}
        return shard_settings(
            self.spec.features, self.spec.buckets[bucket], ids, tokenizer=self.spec.tokenizer_sha256,
            feature_version=self.spec.feature_version, mel_check=self.spec.mel_check, index_only=self.spec.names_audio,
        )  # fmt: skip

    def rows_of(self, shard: ShardPlan, clips: "pa.Table") -> "pa.Table":
        """The index rows of a reused shard: what was written of its clips, with today's paths, times and notes."""
        outcome = self.rows.select(_OUTCOME).take(self.row_of_clip[shard.clips])
        for name in _OUTCOME:
            clips = with_column(clips, name, outcome[name])
        return clips

    def mel_files(self, folder: Path, features: Features) -> dict[ShardPlace, Path]:
        """The shards whose mels decoding the audio again would give; none for a cache without mels."""
        spec = self.spec
        if spec is None or spec.names_audio or spec.mel_dtype != features["shards"]["mel_dtype"]:
            return {}
        if not self.has_settings(features, "audio"):
            return {}
        return {shard_place(file): (folder / shard.file).absolute() for file, shard in self.shards.items()}

    def stored_mels(self, shard: ShardPlan, files: Mapping[ShardPlace, Path]) -> StoredClips:
        """The clips of a shard whose mels lie in these files."""
        rows = self.row_of_clip[shard.clips]
        offsets = np.flatnonzero((rows >= 0) & (self.unchanged[shard.clips] & SAME_FILE != 0))
        table = self.rows.select(STORED_FACTS).take(rows[offsets])
        shards = [ShardPlace(*row) for row in zip(*table.select(_PLACE).to_pydict().values(), strict=True)]
        stored = np.array([shard in files for shard in shards], bool)
        used = {shard: files[shard] for shard in {*shards} & files.keys()}
        return StoredClips(places=offsets[stored], rows=pack(table.filter(stored)), files=used)


def open_previous(cache: Path) -> PreviousCache:
    """Open what is in the folder of a cache; without its index only the plan and the tokenizer are of use."""
    previous = PreviousCache()
    if (cache / SPEC_FILE).exists():
        try:
            previous.spec = load_spec(cache)
            previous.tokenizer = _read_tokenizer(cache, previous.spec)
            previous.rows = _read_rows(cache, previous.spec)
        except LockstepError as error:
            previous.problem = f"{error.where}: {error.found}: the whole cache is built again"
    return previous


def reopened(previous: PreviousCache, cache: Path) -> PreviousCache:
    """The same, unless another process has finished a build there since."""
    current = open_previous(cache)
    return previous if current.spec == previous.spec else current


def _read_rows(cache: Path, spec: CacheSpec) -> "pa.Table":
    """The index without rows of repeated ids, in one piece."""
    import pyarrow.compute as pc

    path = cache / spec.index_file
    if file_sha256(path) != spec.index_sha256:
        raise LockstepError(str(path), found="other content than when it was written", exit_code=1)
    with readable_index(path) as file:
        rows = file.read()
    return rows.filter(pc.invert(rows["duplicate"])).combine_chunks()


def _read_tokenizer(cache: Path, spec: CacheSpec) -> Tokenizer | None:
    try:
        tokenizer = load_tokenizer(cache / spec.tokenizer_file)
    except LockstepError:
        return None
    return tokenizer if tokenizer.sha256 == spec.tokenizer_sha256 else None


def languages_of(table: "pa.Table", main_language: str) -> "pa.ChunkedArray[Any]":
    """The language of each clip; those without one have the main language."""
    import pyarrow.compute as pc

    languages: pa.ChunkedArray[Any] = pc.replace_substring_regex(table["language"], "^$", main_language)
    return languages
