"""The order of the clips: a pure function of (seed, epoch), whose position is a few integers.

Each bucket is an endless stream of its N clips, epoch after epoch. An epoch shuffles the bucket's shards and cuts them
into groups. The shards of a group are read round-robin, one record at a time. Each starts at a record drawn for the
epoch and wraps around, so that different clips meet in each epoch. That stream is cut into blocks, and each block is
shuffled. Blocks draw evenly from all shards of their group and have nearly the same size, so that none is tiny. The
first record of a block in each shard has a closed form: resuming skips the earlier records of one group and reads at
most one block. Batches ignore the ends of epochs: nothing is dropped, and the clips left over open the next epoch. The
next bucket is drawn with probability proportional to the batches each has left in the epoch.

A bucket mixes, clip by clip, one independent stream for each of its corpora. An epoch takes a fixed number of clips of
each, spread evenly over it: a corpus of N clips with weight w gives round(w N) of them. Its own stream continues in the
next epoch, so that weight 0.5 takes every clip once in two epochs, and 2 takes it twice in one. A batch therefore holds
every corpus in proportion, and a position of the mixture is a position in each stream, in closed form.
"""

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import tensorflow as tf

Epoch = tuple[list[tuple[tuple[int, ...], tuple[int, ...]]], list[int]]
"""(shards in reading order and the first record read in each, of each group; clips of the epoch before each group, and
at the end of all)."""
_BUCKET_DRAW, _SHARDS, _RECORDS = 0, 1, 2
"""First value folded into a key, so that each use has its own random numbers."""


def fold_key(seed: tf.Tensor | int, *values: tf.Tensor | int) -> tf.Tensor:
    """Derive a stateless key int64[2] from the seed and the values that identify its use."""
    key = tf.stack([tf.cast(seed, tf.int64), tf.constant(0, tf.int64)])
    for value in values:
        key = tf.random.experimental.stateless_fold_in(key, tf.cast(value, tf.int64), alg="philox")
    return key


def permutation(key: tf.Tensor, size: tf.Tensor | int) -> tf.Tensor:
    """Shuffle range(size) by `key`: int64[size]."""
    draws = tf.random.stateless_uniform([size], key, minval=None, maxval=None, dtype=tf.int64, alg="philox")
    return tf.argsort(draws, stable=True)


def part_size(total: int, most: int) -> int:
    """Size of the fewest equal parts of `total` that are at most `most`; the last may be smaller."""
    return -(-total // -(-total // most))


def round_robin(counts: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """(shard, round) of each record when shards of `counts` records are read in turn, int64[sum(counts)] each."""
    shards = np.repeat(np.arange(len(counts)), counts)
    rounds = np.concatenate([np.arange(count) for count in counts])
    order = np.lexsort((shards, rounds))
    return shards[order], rounds[order]


@dataclass(frozen=True, kw_only=True)
class BlockPosition:
    """A position of the stream, as group and block."""

    group: int
    """Number of the group, counted over all epochs."""
    shards: tuple[int, ...]
    """Shards of the group, in reading order."""
    first_records: tuple[int, ...]
    """First record read in each of them."""
    block: int
    """Number of the block, counted from the start of the group."""
    start: int
    """Clips of the group before the block."""
    consumed: int
    """Clips of the block before the position."""


@dataclass(frozen=True, kw_only=True)
class BucketOrder:
    """The stream of one bucket: the shard and record of its n-th clip."""

    seed: int
    bucket: int
    shard_records: tuple[int, ...]
    """Records in each shard."""
    open_shards: int
    """Largest number of shards read round-robin."""
    block_records: int
    """Largest number of records shuffled together."""

    @cached_property
    def clips(self) -> int:
        """N: clips in one epoch."""
        return sum(self.shard_records)

    @cached_property
    def group_size(self) -> int:
        """Shards in a group; the last of an epoch may have fewer."""
        return part_size(len(self.shard_records), self.open_shards)

    @cached_property
    def groups(self) -> int:
        """Groups in one epoch."""
        return -(-len(self.shard_records) // self.group_size)

    def epoch_shards(self, epoch: tf.Tensor | int) -> tuple[tf.Tensor, tf.Tensor]:
        """Draw an epoch: (shards in reading order, first record read in each), int64[shards] each."""
        shards = permutation(fold_key(self.seed, _SHARDS, self.bucket, epoch), len(self.shard_records))
        key, records = fold_key(self.seed, _SHARDS, self.bucket, epoch, 1), tf.constant(self.shard_records, tf.int64)
        draws = tf.random.stateless_uniform(records.shape, key, minval=None, maxval=None, dtype=tf.int64, alg="philox")
        return tf.cast(shards, tf.int64), tf.gather(draws % records, shards)

    def group_shards(self, group: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """`epoch_shards` of one group, counted over all epochs: int64[<= group_size] each."""
        start = (group % self.groups) * self.group_size
        shards, first_records = self.epoch_shards(group // self.groups)
        return shards[start : start + self.group_size], first_records[start : start + self.group_size]

    def shuffled(
        self, clips: tf.data.Dataset, count: tf.Tensor | int, group: tf.Tensor | int, block: tf.Tensor | int
    ) -> tf.data.Dataset:
        """Shuffle the `count` clips of a block."""
        key = fold_key(self.seed, _RECORDS, self.bucket, group, block)
        seed = tf.random.stateless_uniform([], key, minval=None, maxval=None, dtype=tf.int64, alg="philox")
        return clips.shuffle(tf.cast(count, tf.int64), seed=seed, reshuffle_each_iteration=False)

    def find(self, consumed: int) -> BlockPosition:
        """Find the block of the stream's position `consumed`."""
        epoch, rest = divmod(consumed, self.clips)
        groups, starts = _draw_epoch(self, epoch)
        index = bisect_right(starts, rest) - 1
        shards, first_records = groups[index]
        records, rest = starts[index + 1] - starts[index], rest - starts[index]
        block, in_block = divmod(rest, part_size(records, self.block_records))
        return BlockPosition(
            group=epoch * self.groups + index, shards=shards, first_records=first_records, block=block,
            start=rest - in_block, consumed=in_block,
        )

    def block_reads(self, position: BlockPosition) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Locate the reads from the start of a block on.

        (shards in reading order, first record read in each, records of each already read): int64[shards] each.
        """
        shards, _ = round_robin([self.shard_records[shard] for shard in position.shards])
        already_read = np.bincount(shards[: position.start], minlength=len(position.shards))
        rotated = np.roll(np.arange(len(position.shards)), -shards[position.start])
        return np.array(position.shards)[rotated], np.array(position.first_records)[rotated], already_read[rotated]

    def records_from(self, consumed: int, count: int) -> list[tuple[int, int]]:
        """(shard, record) of the `count` clips after the stream's position `consumed`."""
        records: list[tuple[int, int]] = []
        while len(records) < count:
            position = self.find(consumed + len(records))
            counts = [self.shard_records[shard] for shard in position.shards]
            reads = zip(*round_robin(counts), strict=True)
            group = [(position.shards[i], (position.first_records[i] + int(n)) % counts[i]) for i, n in reads]
            block = group[position.start :][: part_size(len(group), self.block_records)]
            order = self.shuffled(tf.data.Dataset.range(len(block)), len(block), position.group, position.block)
            records += [block[i] for i in list(order.as_numpy_iterator())[position.consumed :]]
        return records[:count]


@lru_cache(maxsize=128)
def _draw_epoch(order: BucketOrder, epoch: int) -> Epoch:
    """Draw an epoch's groups, which takes milliseconds; cached for the orders of up to 64 corpora and buckets."""
    shards, first_records = (column.numpy() for column in order.epoch_shards(epoch))
    starts = np.arange(0, len(shards), order.group_size)
    counts = np.add.reduceat(np.array(order.shard_records)[shards], starts)
    columns = [[tuple(group.tolist()) for group in np.split(column, starts[1:])] for column in (shards, first_records)]
    return list(zip(*columns, strict=True)), [0, *np.cumsum(counts).tolist()]


@dataclass(frozen=True, kw_only=True)
class BucketCorpus:
    """One corpus of a bucket."""

    order: BucketOrder
    """The stream of its clips."""
    shards: tuple[int, ...]
    """Positions of its shards in the bucket's list."""
    clips: int
    """Clips that an epoch takes."""


@dataclass(frozen=True, kw_only=True)
class CorpusMixture:
    """The stream of one bucket: the corpus that gives its n-th clip, and the clip within that corpus."""

    corpora: tuple[BucketCorpus, ...]

    @property
    def clips(self) -> int:
        """Clips in one epoch."""
        return sum(corpus.clips for corpus in self.corpora)

    @property
    def corpus_of_clip(self) -> np.ndarray:
        """int64[clips]: index of the corpus that gives each clip of an epoch."""
        return _spread_evenly(tuple(corpus.clips for corpus in self.corpora))

    def positions(self, consumed: int) -> list[int]:
        """Clips of each corpus before the stream's position `consumed`."""
        if len(self.corpora) == 1:
            return [consumed]
        epochs, rest = divmod(consumed, self.clips)
        counts = np.bincount(self.corpus_of_clip[:rest], minlength=len(self.corpora))
        return [epochs * corpus.clips + int(count) for corpus, count in zip(self.corpora, counts, strict=True)]

    def records_from(self, consumed: int, count: int) -> list[tuple[int, int]]:
        """(shard, record) of the `count` clips after the stream's position `consumed`."""
        order = self.corpus_of_clip[np.arange(consumed, consumed + count) % self.clips]
        streams = []
        for i, (corpus, position) in enumerate(zip(self.corpora, self.positions(consumed), strict=True)):
            records = corpus.order.records_from(position, int((order == i).sum()))
            streams.append(iter([(corpus.shards[shard], record) for shard, record in records]))
        return [next(streams[i]) for i in order]


@lru_cache(maxsize=128)
def _spread_evenly(counts: tuple[int, ...]) -> np.ndarray:
    """int64[sum(counts)]: each index i `counts[i]` times, as evenly spread as that allows."""
    indices = np.repeat(np.arange(len(counts)), counts)
    fractions = np.concatenate([(np.arange(count) + 0.5) / count for count in counts])
    return indices[np.lexsort((indices, fractions))]


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """The order of the buckets."""

    seed: int
    clips: tuple[int, ...]
    """Training clips of each bucket."""
    batches: tuple[int, ...]
    """B of each bucket."""

    def remaining(self, epoch: tf.Tensor, consumed: tf.Tensor) -> tf.Tensor:
        """int64[K]: whole batches that each of the K buckets has left in the epoch."""
        clips, batches = tf.constant(self.clips, tf.int64), tf.constant(self.batches, tf.int64)
        return ((epoch + 1) * clips - consumed) // batches

    def draw(self, epoch: tf.Tensor, consumed: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Draw (epoch, bucket) of the next batch; the epoch advances when no bucket has a whole batch left."""
        (epoch,) = tf.while_loop(
            lambda e: tf.reduce_sum(self.remaining(e, consumed)) == 0, lambda e: (e + 1,), (epoch,)
        )
        remaining = self.remaining(epoch, consumed)
        key = fold_key(self.seed, _BUCKET_DRAW, tf.reduce_sum(consumed))
        ticket = tf.random.stateless_uniform([], key, maxval=tf.reduce_sum(remaining), dtype=tf.int64, alg="philox")
        bucket = tf.reduce_sum(tf.cast(tf.cumsum(remaining) <= ticket, tf.int32))
        return epoch, bucket
