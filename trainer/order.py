"""The order of the clips: a pure function of (seed, epoch), and a position of a handful of integers.

Each bucket is an endless stream of its N clips, epoch after epoch. In an epoch its shards are shuffled, taken in
blocks, and shuffled inside a block, so that a position is found again by reading at most one block. Batches are cut
from the stream without regard to epochs: nothing is dropped; the clips left over at the end of an epoch open the
next one. Which bucket comes next is drawn by the batches each has left in the epoch.
"""

from dataclasses import dataclass

import tensorflow as tf

_BUCKET_DRAW, _SHARDS, _RECORDS = 0, 1, 2
"""First constant folded into a key, so that no two uses share random numbers."""


def fold(seed: tf.Tensor | int, *values: tf.Tensor | int) -> tf.Tensor:
    """A stateless key int64[2] from the seed and the values that name its use."""
    key = tf.stack([tf.cast(seed, tf.int64), tf.constant(0, tf.int64)])
    for value in values:
        key = tf.random.experimental.stateless_fold_in(key, tf.cast(value, tf.int64), alg="philox")
    return key


def permutation(key: tf.Tensor, size: tf.Tensor | int) -> tf.Tensor:
    """int64[size]: the shuffle of range(size) that belongs to `key`."""
    draws = tf.random.stateless_uniform([size], key, minval=None, maxval=None, dtype=tf.int64, alg="philox")
    return tf.argsort(draws, stable=True)


@dataclass(frozen=True, kw_only=True)
class BucketOrder:
    """The stream of one bucket: where its n-th clip is stored."""

    seed: int
    bucket: int
    shard_records: tuple[int, ...]
    """Records in each shard."""
    block_shards: int
    """Shards shuffled together."""

    @property
    def clips(self) -> int:
        """N: clips in one epoch."""
        return sum(self.shard_records)

    @property
    def blocks(self) -> int:
        """Blocks in one epoch."""
        return -(-len(self.shard_records) // self.block_shards)

    def block_shard_numbers(self, block: tf.Tensor | int) -> tf.Tensor:
        """int64[<= block_shards]: shards of block `block` of the stream, counted over all epochs."""
        epoch, place = block // self.blocks, block % self.blocks
        shards = permutation(fold(self.seed, _SHARDS, self.bucket, epoch), len(self.shard_records))
        return shards[place * self.block_shards : (place + 1) * self.block_shards]

    def block_order(self, block: tf.Tensor | int, records: tf.Tensor | int) -> tf.Tensor:
        """int64[records]: the order in which the records of a block are visited."""
        return permutation(fold(self.seed, _RECORDS, self.bucket, block), records)

    def find(self, consumed: int) -> tuple[int, int]:
        """(block, clips of it already visited) of the stream's position `consumed`."""
        epoch, rest = divmod(consumed, self.clips)
        for place in range(self.blocks):
            block = epoch * self.blocks + place
            records = sum(self.shard_records[i] for i in self.block_shard_numbers(block).numpy())
            if rest < records:
                return block, rest
            rest -= records
        raise AssertionError("an epoch's blocks hold all of its clips")

    def locate(self, consumed: int, count: int) -> list[tuple[int, int]]:
        """(shard, position in it) of the `count` clips that follow the stream's position `consumed`."""
        places: list[tuple[int, int]] = []
        block, visited = self.find(consumed)
        while len(places) < count:
            shards = self.block_shard_numbers(block).numpy().tolist()
            stored = [(shard, place) for shard in shards for place in range(self.shard_records[shard])]
            order = self.block_order(block, len(stored)).numpy()
            places += [stored[i] for i in order[visited:]]
            block, visited = block + 1, 0
        return places[:count]


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """Which bucket comes next."""

    seed: int
    clips: tuple[int, ...]
    """Training clips of each bucket."""
    batches: tuple[int, ...]
    """B of each bucket."""

    def remaining(self, epoch: tf.Tensor, consumed: tf.Tensor) -> tf.Tensor:
        """int64[K]: whole batches each bucket has left in the epoch."""
        clips, batches = tf.constant(self.clips, tf.int64), tf.constant(self.batches, tf.int64)
        return ((epoch + 1) * clips - consumed) // batches

    def draw(self, epoch: tf.Tensor, consumed: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """(epoch, bucket) of the next batch; the epoch advances when no bucket has a whole batch left."""
        epoch = tf.while_loop(lambda e: tf.reduce_sum(self.remaining(e, consumed)) == 0, lambda e: (e + 1,), (epoch,))[
            0
        ]
        remaining = self.remaining(epoch, consumed)
        key = fold(self.seed, _BUCKET_DRAW, tf.reduce_sum(consumed))
        ticket = tf.random.stateless_uniform([], key, maxval=tf.reduce_sum(remaining), dtype=tf.int64, alg="philox")
        bucket = tf.reduce_sum(tf.cast(tf.cumsum(remaining) <= ticket, tf.int32))
        return epoch, bucket
