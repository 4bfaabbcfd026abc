"""Plan: the split, bucket, shard and position of every clip, a pure function of ids, texts, lengths and the seed."""

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from xtts.shared.audio.mel_profiles import mel_profile
from xtts.shared.cache.bucket_shapes import BucketShape, choose_shapes, fill, fitting_buckets, round_up
from xtts.shared.cache.cache_spec import SPLITS, shard_file
from xtts.shared.cache.clip_index import ShardId, strings
from xtts.shared.cache.records import CropAudio
from xtts.shared.config import Config

_TOLERATED_LOSS = 0.02
"""Loss of padding efficiency above which the previous padded lengths are chosen again."""
_RECORD_OVERHEAD_BYTES = 256
_BATCH = 2**12
_SMALLEST_TARGET_BYTES = 2**22
_FEWEST_HELD_OUT = 8
"""Fewest texts held out, to measure a voice by."""
_ENOUGH_SHARDS = 64
"""Shards of a corpus that keep all workers busy."""


@dataclass(frozen=True, kw_only=True)
class PlanColumns:
    """Columns of N clips that decide their shards."""

    kept: np.ndarray
    """bool[N]: not rejected."""
    high: np.ndarray
    """uint64[N], of `digest_columns`; decides the order, with `low`."""
    low: np.ndarray
    """uint64[N]; decides the shard."""
    text: np.ndarray
    """uint32[N], of `text_digests`; decides the split."""
    tokens: np.ndarray
    """int64[N]."""
    frames: np.ndarray
    """int64[N]."""
    speaker: np.ndarray
    """int32[N]: position in `speakers`."""
    voice: np.ndarray
    """int32[N]: equal for clips of the same speaker in the same language."""
    corpus: np.ndarray
    """int32[N]: position in `corpora`."""
    speakers: list[str]
    """Names; an empty one if clips have no speaker."""
    corpora: list[str]


def digest_columns(seed: int, ids: Iterable[str]) -> tuple[np.ndarray, np.ndarray]:
    """The first 8 bytes of the digests of these clips, and the next 8: uint64[N] each."""
    joined = b"".join(hashlib.sha256(f"{seed}:{clip_id}".encode()).digest()[:16] for clip_id in ids)
    pairs = np.frombuffer(joined, ">u8").reshape(-1, 2)
    return pairs[:, 0].astype(np.uint64), pairs[:, 1].astype(np.uint64)


def text_digests(seed: int, texts: Iterable[str]) -> np.ndarray:
    """The upper half of the first 8 bytes of each text's digest, uint32[N]."""
    joined = b"".join(hashlib.sha256(f"{seed}:{text}".encode()).digest()[:8] for text in texts)
    return (np.frombuffer(joined, np.uint64) >> np.uint64(32)).astype(np.uint32)


def plan_columns(table: pa.Table, seed: int) -> PlanColumns:
    """The columns of the clips of a table, after the scan."""

    def positions_and_names(column: str) -> tuple[np.ndarray, list[str]]:
        coded = table[column].combine_chunks().dictionary_encode()
        return coded.indices.to_numpy(), strings(coded.dictionary)

    high, low = digest_columns(seed, _strings(table["id"]))
    clips = pc.replace_substring_regex(table["id"], "/.*", "")  # crops have no text: those of a clip stay together
    texts = pc.if_else(pc.equal(table["text"], ""), clips, table["text"])
    texts = pc.replace_substring_regex(texts, "[?؟]", ".")  # a question made of a statement is held out with it
    (speaker, speakers), (corpus, corpora) = positions_and_names("speaker"), positions_and_names("corpus")
    language, languages = positions_and_names("language")
    return PlanColumns(
        kept=pc.equal(table["reason"], "").to_numpy(), high=high, low=low,
        text=text_digests(seed, _strings(texts)), tokens=table["token_length"].to_numpy(),
        frames=table["mel_length"].to_numpy(), speaker=speaker, corpus=corpus,
        voice=speaker * np.int32(len(languages)) + language, speakers=speakers, corpora=corpora,
    )


def _strings(column: "pa.ChunkedArray[Any]") -> Iterator[str]:
    """Yield the values of a column, reading a batch at a time."""
    for start in range(0, len(column), _BATCH):
        yield from strings(column.slice(start, _BATCH))


_Group = tuple[str, int, str]
"""(split, bucket, corpus)."""


@dataclass(frozen=True, kw_only=True)
class ShardPlan:
    """A planned shard and its clips, in order."""

    id: ShardId
    shards: int
    """Count of shards of its split, bucket and corpus."""
    clips: np.ndarray
    """uint32[N]: rows of its clips in the table of all clips."""

    @property
    def file(self) -> str:
        """Path inside the cache."""
        return shard_file(self.id, self.shards)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A planned cache."""

    shapes: list[BucketShape]
    speakers: Mapping[str, int]
    """Speaker to its id, in the order of the ids."""
    shards: list[ShardPlan]
    columns: PlanColumns
    """Columns of all clips."""

    def speakers_of(self, shard: ShardPlan) -> dict[str, int]:
        """Named speakers of a shard's clips, and their ids."""
        names = [self.columns.speakers[i] for i in np.unique(self.columns.speaker[shard.clips])]
        return {name: self.speakers[name] for name in names if name}


@dataclass(frozen=True, kw_only=True)
class PreviousPlan:
    """Decisions of the previous build with the same settings, kept while they fit so that few shards change."""

    shapes: list[BucketShape]
    speakers: list[str]
    shard_counts: Mapping[_Group, int]
    """(split, bucket, corpus) to count of shards."""


def plan_cache(columns: PlanColumns, config: Config, previous: PreviousPlan | None) -> Plan:
    """Give every kept clip its shard; but for the shapes, the shards of a corpus depend on that corpus alone."""
    kept = np.flatnonzero(columns.kept).astype(np.uint32)
    shapes = _shapes(columns.tokens[kept], columns.frames[kept], config, previous)
    previous_counts = previous.shard_counts if previous and previous.shapes == shapes else {}
    names = sorted(columns.corpora)
    groups: list[_Group] = list(product(SPLITS, range(len(shapes)), names))
    held = _held_out(columns, kept, config.split.validation_fraction)
    buckets = fitting_buckets(shapes, columns.tokens[kept], columns.frames[kept])
    assert not (buckets < 0).any()  # the shapes were chosen or checked for these very clips
    ranks = np.array([names.index(name) for name in columns.corpora], np.uint32)
    indices = (held.astype(np.int64), buckets, ranks[columns.corpus[kept]])  # SPLITS: train, validation
    of_clip = np.ravel_multi_index(indices, (len(SPLITS), len(shapes), len(names))).astype(np.uint32)
    counts = _shard_counts(groups, of_clip, columns.frames[kept], shapes, config, previous_counts)
    shards = _divide(columns, groups, kept, of_clip, counts)
    previous_speakers = previous.speakers if previous else []  # they keep their ids
    added = {columns.speakers[i] for i in np.unique(columns.speaker[kept])} - {"", *previous_speakers}
    speakers = {name: i for i, name in enumerate([*previous_speakers, *sorted(added)])}
    return Plan(shapes=shapes, speakers=speakers, shards=shards, columns=columns)


def _held_out(columns: PlanColumns, kept: np.ndarray, fraction: float) -> np.ndarray:
    """bool[kept]: whether a clip is for validation. Each corpus holds out its own."""
    held = np.zeros(len(kept), bool)
    for corpus in range(len(columns.corpora)):
        members = np.flatnonzero(columns.corpus[kept] == corpus)
        held[members] = held_out(columns.text[kept[members]], columns.voice[kept[members]], fraction)
    return held


def held_out(texts: np.ndarray, voices: np.ndarray, fraction: float) -> np.ndarray:
    """bool[N]: clips whose text digest, uint32[N], is among the smallest: about `fraction` of them, never none or all.

    So all readings of a text are on one side of the split. A threshold, not a count: adding or removing a clip moves no
    other clip, except in a small corpus, of whose texts `_FEWEST_HELD_OUT` are held out, or a fifth. The text
    with the largest digest of each voice, int32[N], is trained on, unless that leaves less than a quarter of the texts
    to choose from, as with many voices of one clip.
    """
    distinct = np.unique(texts)
    if not fraction or len(distinct) < 2:
        return np.zeros(len(texts), bool)
    order = np.lexsort((texts, voices))
    is_last = np.append(voices[order][1:] != voices[order][:-1], True)
    free = np.setdiff1d(distinct, texts[order][is_last])
    if 4 * len(free) < len(distinct):
        free = distinct[:-1]
    count = int(np.searchsorted(free, np.uint64(math.ceil(fraction * 2**32))))
    fewest = max(1, min(_FEWEST_HELD_OUT, len(distinct) // 5))
    return np.isin(texts, free[: max(count, fewest)])


def _shard_counts(
    groups: list[_Group], of_clip: np.ndarray, lengths: np.ndarray, shapes: list[BucketShape], config: Config,
    previous_counts: Mapping[_Group, int],
) -> np.ndarray:
    """int64[groups]: count of shards of each group; of_clip: uint32[kept], the group of each clip."""
    clips = np.bincount(of_clip, minlength=len(groups)).tolist()
    frames = np.bincount(of_clip, lengths, len(groups)).astype(np.int64).tolist()
    sizes = [
        stored_bytes(count, total, shapes[group[1]], config)
        for group, count, total in zip(groups, clips, frames, strict=True)
    ]
    corpus_bytes = Counter[str]()
    for (_, _, name), size in zip(groups, sizes, strict=True):
        corpus_bytes[name] += size
    most = config.shards.shard_mb * 2**20  # less if the last shards would leave workers without work
    targets = {
        name: min(most, max(_SMALLEST_TARGET_BYTES, size / _ENOUGH_SHARDS)) for name, size in corpus_bytes.items()
    }
    counts = list[int]()
    for group, size in zip(groups, sizes, strict=True):
        count, previous = max(1, round(size / targets[group[2]])), previous_counts.get(group)
        counts.append(previous if previous and previous <= 2 * count and count <= 2 * previous else count)
    return np.array(counts, np.int64)


def _divide(
    columns: PlanColumns, groups: list[_Group], kept: np.ndarray, of_clip: np.ndarray, counts: np.ndarray
) -> list[ShardPlan]:
    """The shards with clips, in order, and in each its clips in the order of their digests."""
    firsts = np.concatenate([[0], np.cumsum(counts)])  # of each group, its first shard among all
    high, low = columns.high[kept], columns.low[kept]
    shard = (firsts[of_clip] + (low % counts.astype(np.uint64)[of_clip]).astype(np.int64)).astype(np.uint32)
    order = np.lexsort((low, high, shard))
    del high, low
    shard, clips = shard[order], kept[order]
    del order
    starts = np.concatenate([[0], 1 + np.flatnonzero(shard[1:] != shard[:-1])])
    plans = []
    for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(shard)], strict=True):
        group = int(np.searchsorted(firsts, shard[start], "right")) - 1
        split, bucket, corpus = groups[group]
        shard_id = ShardId(split, bucket, int(shard[start]) - int(firsts[group]), corpus)
        plans.append(ShardPlan(id=shard_id, shards=int(counts[group]), clips=clips[start:end]))
    return plans


def _shapes(tokens: np.ndarray, frames: np.ndarray, config: Config, previous: PreviousPlan | None) -> list[BucketShape]:
    if not config.shapes.pad_to_fixed_length:
        return [BucketShape(tokens=round_up(int(tokens.max())), frames=round_up(int(frames.max())))]
    if config.audio.crop_frames:
        return [BucketShape(tokens=round_up(0), frames=round_up(config.audio.crop_frames))]
    best = choose_shapes(tokens, frames, config.shapes.buckets)
    if previous is None or (fitting_buckets(previous.shapes, tokens, frames) < 0).any():
        return best
    loss = fill(frames, [s.frames for s in best]) - fill(frames, [s.frames for s in previous.shapes])
    return best if loss > _TOLERATED_LOSS else previous.shapes


def stored_bytes(clips: int, frames: int, shape: BucketShape, config: Config) -> int:
    """Estimated bytes of `clips` records with `frames` frames in total."""
    profile = mel_profile(config.audio.profile)
    item = (2 if config.shards.mel_dtype == "float16" else 4) * profile.mel_channels
    item += CropAudio.frame_bytes(profile.hop_samples) if config.audio.crop_frames else 0
    stored = clips * shape.frames if config.shapes.pad_to_fixed_length else frames
    return stored * item + clips * (shape.tokens + _RECORD_OVERHEAD_BYTES)
