"""A bucket as a run trains on it: its shape, batch size, signature and order."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from xtts.shared.cache.cache_spec import Bucket, CacheSpec, Split
from xtts.shared.config import Config
from xtts.shared.errors import counted_noun
from xtts.trainer.data.batch import AnyBatch, crop_signature, make_signature
from xtts.trainer.data.batch_sizes import batch_sizes, validation_records
from xtts.trainer.data.clip_order import BucketCorpus, BucketOrder, CorpusMixture, Schedule

SHUFFLE_MB = 512
"""Memory for the shuffle blocks of all buckets together, MiB: the order of the clips depends on it."""
_MOST_TURNS = 16
"""Shards of a bucket that are read round-robin."""
_MOST_OPEN_FILES = 512
"""Open files of all buckets; many systems allow a process 1,024."""


@dataclass(frozen=True, kw_only=True)
class TrainingBucket:
    """One shape of a cache, and everything that its batches depend on."""

    cache: Path
    spec: CacheSpec
    number: int
    batch_size: int
    """B."""
    order: CorpusMixture
    """Order of the training clips."""
    validation_records: list[int]
    """Clips that validation reads from the start of each validation shard."""

    @property
    def stored(self) -> Bucket:
        """Shape (L, T) and shards, as `cache.json` lists them."""
        return self.spec.buckets[self.number]

    @cached_property
    def signature(self) -> AnyBatch:
        """The `tf.TensorSpec` of every field of a batch."""
        return self.signature_of(self.batch_size)

    def signature_of(self, batch_size: int | None) -> AnyBatch:
        """The signature of batches of another size, None for any: locked, or open if clips are stored unpadded."""
        spec, stored = self.spec, self.stored
        if spec.holds_crops:
            hop = spec.mel_profile.hop_samples
            return crop_signature(stored.frames, batch_size, mel=spec.mel_dtype, channels=spec.mel_channels, hop=hop)
        tokens, frames = (stored.tokens, stored.frames) if spec.fixed_length else (None, None)
        return make_signature(tokens, frames, batch_size, mel=spec.mel_dtype, channels=spec.mel_channels)

    @property
    def described(self) -> str:
        """The shape of a batch in words."""
        if self.spec.holds_crops:
            return f"{self.batch_size} crops of {self.stored.frames} frames"
        return f"{counted_noun(self.batch_size, 'clip')} of {self.stored.tokens} tokens, {self.stored.frames} frames"

    @property
    def extent(self) -> tuple[int, int]:
        """(frames of a batch, frames of a clip), padded: the step with the largest extent takes the most memory."""
        return self.batch_size * self.stored.frames, self.stored.frames

    @property
    def trains(self) -> bool:
        """Whether it holds training clips."""
        return bool(self.stored.clips("train"))

    @property
    def validates(self) -> bool:
        """Whether validation reads clips of it."""
        return any(self.validation_records)

    def batch_after(self, consumed: int) -> tuple[int, list[tuple[int, int]]]:
        """(its number, (shard, record) of each clip) of the batch after so many of its clips."""
        return self.number, self.order.records_from(consumed, self.batch_size)

    def files(self, split: Split) -> list[str]:
        """Paths of the shards of one split, in order."""
        return [str(self.cache / shard.file) for shard in self.stored.shards(split)]


def training_buckets(cache: Path, spec: CacheSpec, config: Config) -> list[TrainingBucket]:
    """Every bucket with a batch size, by number: the closed set of shapes, if clips are stored padded."""
    sizes, validated = batch_sizes(spec, config.training), validation_records(spec, config.training.validation_clips)
    return [
        TrainingBucket(
            cache=cache, spec=spec, number=number, batch_size=size,
            order=bucket_order(spec, number, seed=config.training.seed), validation_records=validated[number],
        )
        for number, size in sizes.items()
    ]


def bucket_schedule(buckets: Sequence[TrainingBucket], seed: int) -> Schedule:
    """The order of buckets that hold training clips."""
    clips, batches = ([bucket.order.clips for bucket in buckets], [bucket.batch_size for bucket in buckets])
    return Schedule(seed=seed, clips=tuple(clips), batches=tuple(batches))


def bucket_order(spec: CacheSpec, number: int, *, seed: int, memory_mb: int = SHUFFLE_MB) -> CorpusMixture:
    """The stream of one bucket's training clips; two blocks of every bucket take at most `memory_mb` MiB together."""
    bucket, buckets = spec.buckets[number], len(spec.buckets)
    stored, records = sum(shard.bytes for shard in bucket.train), bucket.clips("train")
    block_records = (memory_mb << 20) * records // (2 * buckets * max(stored, 1))
    corpora, clips = bucket.corpora(), spec.epoch_clips(bucket)
    mixed = []
    for name, positions in corpora.items():
        corpus_clips = spec.epoch_clips(bucket, positions)
        order = BucketOrder(
            # Every corpus with a name has a seed of its own, below 2**63.
            seed=int.from_bytes(hashlib.sha256(f"{seed}:{name}".encode()).digest()[:8], "big") >> 1 if name else seed,
            bucket=number,
            shard_records=tuple(bucket.train[i].records for i in positions),
            open_shards=max(1, min(_MOST_TURNS, _MOST_OPEN_FILES // (buckets * len(corpora)))),
            block_records=max(1, block_records * corpus_clips // clips),
        )
        mixed.append(BucketCorpus(order=order, shards=tuple(positions), clips=corpus_clips))
    return CorpusMixture(corpora=tuple(mixed))
