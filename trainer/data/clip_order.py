"""The order of the clips: a pure function of (seed, epoch), with a position of a few integers.

Each bucket is an endless stream of its N clips, epoch after epoch. An epoch shuffles the bucket's shards and cuts them
into groups. The shards of a group are read round-robin, one record at a time. Each starts at a record drawn for the
epoch and wraps around, so that other clips meet in every epoch. That stream is cut into blocks, and each block is
shuffled as a whole. Blocks draw evenly from all shards of their group, and are of even size, so that none is tiny.
Where a block begins in each shard has a closed form: resuming skips the earlier records of one group and reads at most
one block. Batches ignore the ends of epochs: nothing is dropped, and the clips left over open the next epoch. The next
bucket is drawn with probability proportional to the batches each has left in the epoch.

A bucket mixes a stream of each corpus that it holds, clip by clip, which know nothing of the others. An epoch takes a
fixed number of clips of each, spread evenly over it: a corpus of N clips with weight w gives round(w N) of them. Its
own stream goes on in the next epoch, so that 0.5 takes every clip once in two epochs, and 2 takes it twice in one. A
batch therefore holds every corpus in its proportion, and a position of the mixture is a position in each stream, in
closed form.
"""

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import tensorflow as tf

_BUCKET_DRAW, _SHARDS, _RECORDS = 0, 1, 2
"""First constant folded into a key, so that no two uses share random numbers."""


def fold(seed: tf.Tensor | int, *values: tf.Tensor | int) -> tf.Tensor:
    """A stateless key int64[2] from the seed and the values that identify its use."""
    key = tf.stack([tf.cast(seed, tf.int64), tf.constant(0, tf.int64)])
    for value in values:
        key = tf.random.experimental.stateless_fold_in(key, tf.cast(value, tf.int64), alg="philox")
    return key


def permutation(key: tf.Tensor, size: tf.Tensor | int) -> tf.Tensor:
    """int64[size]: range(size), shuffled by `key`."""
    draws = tf.random.stateless_uniform([size], key, minval=None, maxval=None, dtype=tf.int64, alg="philox")
    return tf.argsort(draws, stable=True)


def part_size(total: int, most: int) -> int:
    """Split `total` into the fewest even parts of at most `most`: the size of each; the last may be smaller."""
    return -(-total // -(-total // most))


def interleaved(counts: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """(shard, round) of each record when shards are read round-robin, int64[sum(counts)] each."""
    shards = np.repeat(np.arange(len(counts)), counts)
    rounds = np.concatenate([np.arange(count) for count in counts])
    turns = np.lexsort((shards, rounds))
    return shards[turns], rounds[turns]


@dataclass(frozen=True, kw_only=True)
class BlockPlace:
    """Where a position of the stream is stored."""

    group: int
    """Group number, counted over all epochs."""
    shards: tuple[int, ...]
    """Shards of the group, in reading order."""
    begins: tuple[int, ...]
    """First record read in each of them."""
    block: int
    """Block number, counted from the start of the group."""
    start: int
    """Clips of the group before the block."""
    visited: int
    """Clips of the block before the position."""


@dataclass(frozen=True, kw_only=True)
class BucketOrder:
    """The stream of one bucket: which shard and record hold its n-th clip."""

    seed: int
    bucket: int
    shard_records: tuple[int, ...]
    """Records in each shard."""
    open_shards: int
    """Most shards read round-robin."""
    block_records: int
    """Most records shuffled together."""

    @cached_property
    def clips(self) -> int:
        """N: clips in one epoch."""
        return sum(self.shard_records)

    @cached_property
    def _drawn(self) -> dict[int, "_Epoch"]:
        """The epochs drawn last, by number: drawing one takes milliseconds."""
        return {}

    @cached_property
    def group_size(self) -> int:
        """Shards in a group; the last of an epoch may have fewer."""
        return part_size(len(self.shard_records), self.open_shards)

    @cached_property
    def groups(self) -> int:
        """Groups in one epoch."""
        return -(-len(self.shard_records) // self.group_size)

    def epoch_shards(self, epoch: tf.Tensor | int) -> tuple[tf.Tensor, tf.Tensor]:
        """(shards of an epoch in reading order, first record read in each): int64[shards] each."""
        shards = permutation(fold(self.seed, _SHARDS, self.bucket, epoch), len(self.shard_records))
        key, records = fold(self.seed, _SHARDS, self.bucket, epoch, 1), tf.constant(self.shard_records, tf.int64)
        draws = tf.random.stateless_uniform(records.shape, key, minval=None, maxval=None, dtype=tf.int64, alg="philox")
        return tf.cast(shards, tf.int64), tf.gather(draws % records, shards)

    def group_shards(self, group: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """`epoch_shards` of one group, whose number counts over all epochs: int64[<= group_size] each."""
        here = (group % self.groups) * self.group_size
        shards, begins = self.epoch_shards(group // self.groups)
        return shards[here : here + self.group_size], begins[here : here + self.group_size]

    def shuffled(
        self, clips: tf.data.Dataset, count: tf.Tensor | int, group: tf.Tensor | int, block: tf.Tensor | int
    ) -> tf.data.Dataset:
        """The `count` clips of a block, shuffled."""
        key = fold(self.seed, _RECORDS, self.bucket, group, block)
        seed = tf.random.stateless_uniform([], key, minval=None, maxval=None, dtype=tf.int64, alg="philox")
        return clips.shuffle(tf.cast(count, tf.int64), seed=seed, reshuffle_each_iteration=False)

    def find(self, consumed: int) -> BlockPlace:
        """The stream's position `consumed`."""
        epoch, rest = divmod(consumed, self.clips)
        drawn = self._epoch(epoch)
        number = bisect_right(drawn.starts, rest) - 1
        shards, begins = drawn.groups[number]
        records, rest = drawn.starts[number + 1] - drawn.starts[number], rest - drawn.starts[number]
        block, visited = divmod(rest, part_size(records, self.block_records))
        group = epoch * self.groups + number
        return BlockPlace(group=group, shards=shards, begins=begins, block=block, start=rest - visited, visited=visited)

    def turns(self, place: BlockPlace) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What to read for the block of a place.

        (shards in reading order, first record read in each, records of each already read): int64[shards] each.
        """
        shards, _ = interleaved([self.shard_records[shard] for shard in place.shards])
        before = np.bincount(shards[: place.start], minlength=len(place.shards))
        rotated = np.roll(np.arange(len(place.shards)), -shards[place.start])
        return np.array(place.shards)[rotated], np.array(place.begins)[rotated], before[rotated]

    def locate(self, consumed: int, count: int) -> list[tuple[int, int]]:
        """(shard, record) of the `count` clips after the stream's position `consumed`."""
        located: list[tuple[int, int]] = []
        while len(located) < count:
            place = self.find(consumed + len(located))
            stored = self._group_records(place)
            stored = stored[place.start :][: part_size(len(stored), self.block_records)]
            order = self.shuffled(tf.data.Dataset.range(len(stored)), len(stored), place.group, place.block)
            located += [stored[i] for i in list(order.as_numpy_iterator())[place.visited :]]
        return located[:count]

    def _epoch(self, number: int) -> "_Epoch":
        """An epoch's shards, kept with those of one other epoch."""
        if number not in self._drawn:
            shards, begins = (part.numpy() for part in self.epoch_shards(number))
            starts = np.arange(0, len(shards), self.group_size)
            counts = np.add.reduceat(np.array(self.shard_records)[shards], starts)
            cut = [[tuple(group.tolist()) for group in np.split(part, starts[1:])] for part in (shards, begins)]
            drawn = _Epoch(groups=list(zip(*cut, strict=True)), starts=[0, *np.cumsum(counts).tolist()])
            while len(self._drawn) > 1:
                del self._drawn[min(self._drawn)]
            self._drawn[number] = drawn
        return self._drawn[number]

    def _group_records(self, place: BlockPlace) -> list[tuple[int, int]]:
        """(shard, record) of all records of a group in reading order."""
        counts = [self.shard_records[shard] for shard in place.shards]
        turns = zip(*interleaved(counts), strict=True)
        return [(place.shards[i], (place.begins[i] + int(turn)) % counts[i]) for i, turn in turns]


@dataclass(frozen=True, kw_only=True)
class _Epoch:
    """The shards of one epoch."""

    groups: list[tuple[tuple[int, ...], tuple[int, ...]]]
    """(shards in reading order, first record read in each) of each group."""
    starts: list[int]
    """Clips of the epoch before each group, and those of all groups."""


@dataclass(frozen=True, kw_only=True)
class CorpusPart:
    """One corpus of a bucket."""

    order: BucketOrder
    """The stream of its clips."""
    shards: tuple[int, ...]
    """Places of its shards among all of the bucket."""
    clips: int
    """Clips that an epoch takes."""


@dataclass(frozen=True, kw_only=True)
class CorpusMixture:
    """The stream of one bucket: which corpus gives its n-th clip, and which of its clips that is."""

    seed: int
    """Of the run."""
    parts: tuple[CorpusPart, ...]

    @property
    def clips(self) -> int:
        """Clips in one epoch."""
        return sum(part.clips for part in self.parts)

    @property
    def turns(self) -> np.ndarray:
        """int64[clips]: the part that gives each clip of an epoch."""
        return _turns(tuple(part.clips for part in self.parts))

    def positions(self, consumed: int) -> list[int]:
        """Clips of each part before the stream's position `consumed`."""
        if len(self.parts) == 1:
            return [consumed]
        epochs, rest = divmod(consumed, self.clips)
        taken = np.bincount(self.turns[:rest], minlength=len(self.parts))
        return [epochs * part.clips + int(more) for part, more in zip(self.parts, taken, strict=True)]

    def locate(self, consumed: int, count: int) -> list[tuple[int, int]]:
        """(shard, record) of the `count` clips after the stream's position `consumed`."""
        turns = self.turns[np.arange(consumed, consumed + count) % self.clips]
        streams = []
        for number, (part, position) in enumerate(zip(self.parts, self.positions(consumed), strict=True)):
            located = part.order.locate(position, int((turns == number).sum()))
            streams.append(iter([(part.shards[shard], record) for shard, record in located]))
        return [next(streams[number]) for number in turns]


@lru_cache(maxsize=128)
def _turns(clips: tuple[int, ...]) -> np.ndarray:
    """Numbers of streams, each as often as it gives clips and as evenly spread as that allows."""
    numbers = np.repeat(np.arange(len(clips)), clips)
    places = np.concatenate([(np.arange(count) + 0.5) / count for count in clips])
    return numbers[np.lexsort((numbers, places))]


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
        (epoch,) = tf.while_loop(
            lambda e: tf.reduce_sum(self.remaining(e, consumed)) == 0, lambda e: (e + 1,), (epoch,)
        )
        remaining = self.remaining(epoch, consumed)
        key = fold(self.seed, _BUCKET_DRAW, tf.reduce_sum(consumed))
        ticket = tf.random.stateless_uniform([], key, maxval=tf.reduce_sum(remaining), dtype=tf.int64, alg="philox")
        bucket = tf.reduce_sum(tf.cast(tf.cumsum(remaining) <= ticket, tf.int32))
        return epoch, bucket
