"""The cache that the last build finished, and what a build can take from it."""

from collections import Counter
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from xtts.precompute.corpus.clip_audio import size_and_time
from xtts.precompute.corpus.record_recipe import RecordRecipe
from xtts.precompute.features.cached_mels import STORED_COLUMNS, StoredClips
from xtts.precompute.features.tables import pack
from xtts.precompute.pipeline.plan import PreviousPlan, ShardPlan
from xtts.shared.audio.mel import FEATURE_VERSION
from xtts.shared.cache.bucket_shapes import BucketShape
from xtts.shared.cache.cache_spec import (
    SPEC_FILE,
    CacheSpec,
    Shard,
    load_spec,
    shard_count,
    shard_id_of,
    without_digest,
)
from xtts.shared.cache.clip_index import QUALITIES, ShardId, index_schema, readable_index, with_column
from xtts.shared.cache.quick_check import file_sha256
from xtts.shared.errors import LockstepError
from xtts.shared.feature_settings import Features, feature_differences
from xtts.shared.text.tokenizer import Tokenizer, load_tokenizer

SAME_FILE, SAME_CLIP = 1, 2
"""Flags: what of a clip is unchanged since the previous build. SAME_FILE: the stored mel can be reused. SAME_CLIP: its
record would have the same bytes."""
_SHARD = ["split", "bucket", "shard", "corpus"]
_WRITTEN = [
    "status", "reason", "detail", "split", "bucket", "shard", "position", "audio_sha256", "record_sha256", "mel_sum",
    "mel_square_sum", *QUALITIES,
]
"""Columns that writing a shard decides."""


@dataclass(frozen=True, kw_only=True)
class PreviousCache:
    """A finished cache; empty if there is none or nothing of it can be reused."""

    spec: CacheSpec | None = None
    tokenizer: Tokenizer | None = None
    """Tokenizer; None if the file is damaged."""
    rows: pa.Table = field(default_factory=lambda: index_schema().empty_table())
    """Rows of the index without repeated ids; empty if the file is damaged."""
    problem: str = ""
    """A line about a damaged file, for the user."""
    folder: Path = Path()

    def has_settings(self, features: Features, *sections: str) -> bool:
        """Whether it was built with these settings in these sections, by this version of the feature extractor."""
        if self.spec is None or self.spec.feature_version != FEATURE_VERSION:
            return False
        return not feature_differences(self.spec.features, {name: features[name] for name in sections})

    def has_texts(self, clips: pa.Table, main_language: str) -> "pa.Array[Any]":
        """bool[N]: whether the cache has the text of each clip, in the same language."""
        separator = pa.scalar("|", pa.large_string())
        texts, previous_texts = (
            pc.binary_join_element_wise(languages_of(table, main_language), table["text"], separator)
            for table in (clips, self.rows)
        )
        is_in: pa.Array[Any] = pc.is_in(texts, value_set=previous_texts.combine_chunks())
        return is_in

    def plan(self, features: Features) -> PreviousPlan | None:
        """The decisions that the cache embodies; None if they were made with other settings."""
        spec = self.spec
        if spec is None or not self.has_settings(features, *features):
            return None
        ids = {shard.file: shard_id_of(shard.file) for shard in spec.shards()}
        counts = {(shard.split, shard.bucket, shard.corpus): shard_count(file) for file, shard in ids.items()}
        shapes = [BucketShape(tokens=bucket.tokens, frames=bucket.frames) for bucket in spec.buckets]
        return PreviousPlan(shapes=shapes, speakers=spec.speakers, shard_counts=counts)

    @cached_property
    def clips_in_shard(self) -> Counter[ShardId]:
        """Count of the rows of each shard."""
        counts = self.rows.select(_SHARD).group_by(_SHARD).aggregate([([], "count_all")])
        return Counter({ShardId(*row[:4]): row[4] for row in zip(*counts.to_pydict().values(), strict=True)})


@dataclass(frozen=True, kw_only=True)
class Reusable:
    """Parts of the previous cache that a build of N clips can reuse."""

    cache: PreviousCache
    row_of_clip: np.ndarray
    """int64[N]: the cache's row of each clip, -1 for none."""
    unchanged: np.ndarray
    """uint8[N]: flags such as `SAME_FILE`, which the scan finds; 0 before it."""
    same_audio: bool
    """Whether the audio settings are the same."""
    same_text: bool
    """Whether the text settings and the tokenizer are the same."""
    shards: Mapping[str, Shard]
    """Shards present in the cache's folder, by file without digest."""
    mel_files: Mapping[ShardId, Path]
    """The `shards` whose stored mels are still valid."""

    def finished(self, shard: ShardPlan, settings: str) -> Shard | None:
        """The shard with just these clips, unchanged, in this order and with these settings; else None."""
        finished, rows = self.shards.get(shard.file), self.row_of_clip[shard.clips]
        if finished is None or finished.settings != settings:
            return None
        if self.cache.clips_in_shard[shard.id] != len(rows) or (rows < 0).any():
            return None
        table = self.cache.rows.select([*_SHARD, "position"]).take(rows)
        shards = set(zip(*table.select(_SHARD).to_pydict().values(), strict=True))
        positions = table["position"].to_numpy()
        in_order = (np.diff(positions[positions >= 0]) > 0).all()
        unchanged = (self.unchanged[shard.clips] & SAME_CLIP).all()
        return finished if shards == {shard.id} and in_order and unchanged else None

    def rows_of(self, shard: ShardPlan, clips: pa.Table) -> pa.Table:
        """The index rows of a reused shard: as written, with today's paths, times and notes."""
        written = self.cache.rows.select(_WRITTEN).take(self.row_of_clip[shard.clips])
        for name in _WRITTEN:
            clips = with_column(clips, name, written[name])
        return clips

    def stored_mels(self, shard: ShardPlan) -> StoredClips:
        """The clips of a shard whose mels the cache holds."""
        rows, files = self.row_of_clip[shard.clips], self.mel_files
        positions = np.flatnonzero((rows >= 0) & (self.unchanged[shard.clips] & SAME_FILE != 0))
        table = self.cache.rows.select(STORED_COLUMNS).take(rows[positions])
        shards = [ShardId(*row) for row in zip(*table.select(_SHARD).to_pydict().values(), strict=True)]
        stored = np.array([shard in files for shard in shards], bool)
        used = {shard: files[shard] for shard in {*shards} & files.keys()}
        return StoredClips(positions=positions[stored], rows=pack(table.filter(stored)), files=used)


def find_reusable(cache: PreviousCache, clips: pa.Table, recipe: RecordRecipe, exclude: Collection[str]) -> Reusable:
    """Find what a build of these clips can take from a cache; a clip with the id of an earlier one has no row.

    exclude: files of shards that must not be reused.
    """
    ids = pc.if_else(clips["duplicate"], pa.scalar(None, clips["id"].type), clips["id"])
    rows = pc.index_in(ids, value_set=cache.rows["id"].combine_chunks(), skip_nulls=True)
    same_audio, same_text = (cache.has_settings(recipe.features, section) for section in ("audio", "text"))
    spec, shards, mel_files = cache.spec, dict[str, Shard](), dict[ShardId, Path]()
    if spec is not None and not cache.problem:
        sound = [shard for shard in spec.shards() if size_and_time(cache.folder / shard.file)[0] == shard.bytes]
        shards = {without_digest(shard.file): shard for shard in sound if shard.file not in exclude}
        if same_audio and spec.mel_dtype == recipe.config.shards.mel_dtype:
            paths = ((file, cache.folder / shard.file) for file, shard in shards.items())
            mel_files = {shard_id_of(file): path.absolute() for file, path in paths}
    return Reusable(
        cache=cache, row_of_clip=rows.fill_null(-1).to_numpy().astype(np.int64),
        unchanged=np.zeros(len(clips), np.uint8), same_audio=same_audio,
        same_text=same_text and spec is not None and spec.tokenizer_sha256 == recipe.tokenizer.sha256,
        shards=shards, mel_files=mel_files,
    )


def open_previous(cache: Path) -> PreviousCache:
    """Open the cache in a folder, if there is one; of a damaged one only the plan and the tokenizer can be used."""
    previous = PreviousCache(folder=cache)
    if not (cache / SPEC_FILE).exists():
        return previous
    try:
        spec = load_spec(cache)
        previous = replace(previous, spec=spec)
        with suppress(LockstepError):
            tokenizer = load_tokenizer(cache / spec.tokenizer_file)
            previous = replace(previous, tokenizer=tokenizer if tokenizer.sha256 == spec.tokenizer_sha256 else None)
        index = cache / spec.index_file
        if file_sha256(index) != spec.index_sha256:
            raise LockstepError(str(index), found="content differs from what was written", exit_code=1)
        with readable_index(index) as file:
            rows = file.read()
    except LockstepError as error:
        return replace(previous, problem=f"{error.location}: {error.found}: the whole cache is rebuilt")
    return replace(previous, rows=rows.filter(pc.invert(rows["duplicate"])).combine_chunks())


def languages_of(table: pa.Table, main_language: str) -> "pa.ChunkedArray[Any]":
    """The language of each clip; those without one have the main language."""
    languages: pa.ChunkedArray[Any] = pc.replace_substring_regex(table["language"], "^$", main_language)
    return languages
