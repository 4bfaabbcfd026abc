"""Batches from shards: TFRecord and `tf.io.parse_example` only, shapes and types from the cache spec alone."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import tensorflow as tf

from xtts.shared.audio.mel_profiles import mel_profile
from xtts.shared.cache.cache_spec import Bucket, CacheSpec
from xtts.trainer.data.clip_order import BucketOrder, part_size

F = TypeVar("F", bound=Callable[..., Any])
Batch = tuple[tf.Tensor, ...]
"""tokens int32[B, L], mel [B, T, M] as stored, token_length int32[B], mel_length int32[B] (, speaker int32[B]).

The step widens a float16 mel: XLA does it where it is read, tf.data would write and read it once more.
"""

_MOST_TURNS = 16
"""Shards of a bucket that are read in turn."""
_MOST_OPEN_FILES = 512
"""Of all buckets; many systems allow a process 1,024."""


def without_autograph(function: F) -> F:
    """The function as it is: it has no control flow for AutoGraph to convert."""
    return cast(F, tf.autograph.experimental.do_not_convert(function))


def batch_signature(spec: CacheSpec, bucket: Bucket, batch_size: int | None) -> list[tf.TensorSpec]:
    """The locked signature of one bucket, in the order of `Batch`; relaxed where clips are stored at own length."""
    tokens, frames = (bucket.tokens, bucket.frames) if spec.fixed_length else (None, None)
    shapes = {
        "tokens": tf.TensorSpec([batch_size, tokens], tf.int32, "tokens"),
        "mel": tf.TensorSpec([batch_size, frames, spec.mel_channels], tf.as_dtype(spec.mel_dtype), "mel"),
        "token_length": tf.TensorSpec([batch_size], tf.int32, "token_length"),
        "mel_length": tf.TensorSpec([batch_size], tf.int32, "mel_length"),
    }
    if len(spec.speakers) > 1:
        shapes["speaker"] = tf.TensorSpec([batch_size], tf.int32, "speaker")
    return list(shapes.values())


def signatures(spec: CacheSpec, sizes: dict[int, int]) -> dict[int, list[tf.TensorSpec]]:
    """The closed set: the signature of every bucket with a batch size, by number."""
    return {number: batch_signature(spec, spec.buckets[number], size) for number, size in sizes.items()}


def blank_batch(signature: list[tf.TensorSpec]) -> Batch:
    """A batch of clips without tokens or frames: it compiles a step and changes nothing."""
    return tuple(tf.zeros(part.shape, part.dtype) for part in signature)


def parser(spec: CacheSpec, bucket: Bucket, batch_size: int | None) -> Callable[[tf.Tensor], Batch]:
    """Function from serialized string[B] to a `Batch` of the bucket's signature."""
    number = tf.io.FixedLenFeature([], tf.int64)
    # Clips of their own lengths come out as long as the batch's longest, filled up with 0.
    ragged = tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True)
    features = {
        "tokens": tf.io.FixedLenFeature([bucket.tokens], tf.int64) if spec.fixed_length else ragged,
        "mel": tf.io.FixedLenFeature([], tf.string),
        "token_length": number,
        "mel_length": number,
        "speaker": number,
    }
    signature = batch_signature(spec, bucket, batch_size)

    @without_autograph
    def parse(serialized: tf.Tensor) -> Batch:
        parsed = tf.io.parse_example(serialized, features)
        if spec.fixed_length:
            parsed["mel"] = tf.io.decode_raw(parsed["mel"], tf.as_dtype(spec.mel_dtype))
            parsed["mel"] = tf.reshape(parsed["mel"], [batch_size, bucket.frames, spec.mel_channels])
        else:
            parsed["mel"] = padded_mels(parsed["mel"], parsed["mel_length"], spec)
        return tuple(tf.ensure_shape(tf.cast(parsed[part.name], part.dtype), part.shape) for part in signature)

    return parse


def padded_mels(raw: tf.Tensor, mel_length: tf.Tensor, spec: CacheSpec) -> tf.Tensor:
    """string[B], mel_length int64[B] -> stored type [B, T, M]: padded with silence to the batch's longest clip."""
    dtype = tf.as_dtype(spec.mel_dtype)
    bits = {tf.float16: tf.int16, tf.float32: tf.int32}[dtype]  # decoding to a fixed length knows no float16
    mel = tf.io.decode_raw(raw, bits, fixed_length=tf.reduce_max(tf.strings.length(raw)))
    mel = tf.reshape(tf.bitcast(mel, dtype), [tf.shape(raw)[0], -1, spec.mel_channels])
    frame_mask = tf.sequence_mask(mel_length, tf.shape(mel)[1])[..., tf.newaxis]
    return tf.where(frame_mask, mel, tf.constant(mel_profile(spec.profile["name"]).silence, dtype))


def bucket_order(spec: CacheSpec, number: int, *, seed: int, memory_mb: int) -> BucketOrder:
    """The stream of one bucket's training clips; the blocks of all buckets, two each, take `memory_mb` MiB at most."""
    shards, buckets = spec.buckets[number].train, len(spec.buckets)
    stored, clips = sum(shard.bytes for shard in shards), sum(shard.records for shard in shards)
    return BucketOrder(
        seed=seed,
        bucket=number,
        shard_records=tuple(shard.records for shard in shards),
        open_shards=max(1, min(_MOST_TURNS, _MOST_OPEN_FILES // buckets)),
        block_records=max(1, (memory_mb << 20) * clips // (2 * buckets * stored)),
    )


def _options(dataset: tf.data.Dataset, *, autotune: bool) -> tf.data.Dataset:
    options = tf.data.Options()
    options.deterministic = True
    options.autotune.enabled = autotune
    options.experimental_warm_start = True  # read while the steps are compiled, not when the first batch is asked for
    options.experimental_optimization.map_parallelization = True
    return dataset.with_options(options)


def _read_in_turn(files: tf.Tensor, records: tf.Tensor, begins: tf.Tensor, before: tf.Tensor) -> tf.data.Dataset:
    """Serialized clips, string[] each: `records` of each shard, from `begins` on and round, less the first `before`.

    files: string[N], the others: int64[N]. There are no read buffers: a record would be copied through them once more,
    and the kernel reads ahead by itself.
    """
    passed = begins + before
    again = tf.maximum(passed - records, 0)

    @without_autograph
    def read(file: tf.Tensor, passed: tf.Tensor, again: tf.Tensor, begin: tf.Tensor) -> tf.data.Dataset:
        stored = tf.data.TFRecordDataset(file, buffer_size=0)
        return stored.skip(passed).concatenate(stored.skip(again).take(begin - again))

    shards = tf.data.Dataset.from_tensor_slices((files, passed, again, begins))
    return shards.interleave(read, cycle_length=tf.size(files, tf.int64), block_length=1)


def clip_stream(cache: Path, spec: CacheSpec, order: BucketOrder, consumed: int) -> tf.data.Dataset:
    """Endless data set of serialized clips, string[] each, from the stream's position `consumed` on.

    To get there it passes over the records of one group at most, of which it reads the lengths alone, and then reads
    one block, whose visited clips it drops. In memory are the block in use and the one after it: there are no read
    buffers, and of all open shards (`group_size`) no record but the one that is being read.
    """
    files = tf.constant([str(cache / shard.file) for shard in spec.buckets[order.bucket].train])
    records = tf.constant(order.shard_records, tf.int64)
    first = order.find(consumed)

    @without_autograph
    def blocks(group: tf.Tensor, shards: tf.Tensor, begins: tf.Tensor, before: tf.Tensor) -> tf.data.Dataset:
        """(group, number in it, clips string[<= block_records]) of each block that follows the `before` records."""
        counts = tf.gather(records, shards)
        size = part_size(tf.reduce_sum(counts), order.block_records)
        stored = _read_in_turn(tf.gather(files, shards), counts, begins, before).batch(size)
        numbered = stored.enumerate(tf.reduce_sum(before) // size)
        # Synchronous: tf.data would hold as many blocks as it has threads.
        return numbered.map(without_autograph(lambda number, clips: (group, number, clips)), synchronous=True)

    @without_autograph
    def whole(group: tf.Tensor) -> tf.data.Dataset:
        shards, begins = order.group_shards(group)
        return blocks(group, shards, begins, tf.zeros_like(begins))

    @without_autograph
    def visit(group: tf.Tensor, block: tf.Tensor, clips: tf.Tensor) -> tf.data.Dataset:
        again = (group == first.group) & (block == first.block)
        visited = tf.where(again, tf.constant(first.visited, tf.int64), tf.constant(0, tf.int64))
        # Slices of a block share its memory until they are batched: a clip is copied once, and no function is called
        # for it, which would cost as much as several copies.
        return order.shuffled(tf.data.Dataset.from_tensor_slices(clips), tf.size(clips), group, block).skip(visited)

    opening = blocks(*(tf.constant(part, tf.int64) for part in (first.group, *order.turns(first))))
    groups = opening.concatenate(tf.data.Dataset.counter(first.group + 1).flat_map(whole))
    return groups.prefetch(1).flat_map(visit)  # one block is read ahead while the one before it is consumed


def training_batches(
    cache: Path, spec: CacheSpec, order: BucketOrder, *, batch_size: int, consumed: int
) -> tf.data.Dataset:
    """Endless data set of `Batch`es of one bucket, from the stream's position `consumed` on; two are kept ready.

    One thread reads blocks and one parses batches: more threads, and tuning how many, give nothing beyond the noise
    (benchmarks/training_input.py).
    """
    parse = parser(spec, spec.buckets[order.bucket], batch_size)
    batches = clip_stream(cache, spec, order, consumed).batch(batch_size, drop_remainder=True)
    return _options(batches.map(parse, synchronous=True).prefetch(2), autotune=False)


def ahead_on(batches: tf.data.Dataset, device: str | None) -> tf.data.Dataset:
    """The same batches, of which the next one is copied into the device's memory while a step runs on this one."""
    return batches if device is None else batches.apply(tf.data.experimental.prefetch_to_device(device, 1))


def validation_batches(cache: Path, spec: CacheSpec, number: int, *, batch_size: int) -> tf.data.Dataset:
    """Every validation clip of one bucket once; the last batch is filled up with blank clips.

    Where clips are stored at own length nothing is filled up: the last batch may be smaller.
    """
    bucket = spec.buckets[number]
    files = [str(cache / shard.file) for shard in bucket.validation]
    if not spec.fixed_length:
        batches = tf.data.TFRecordDataset(files).batch(batch_size).map(parser(spec, bucket, None))
        return _options(batches.prefetch(1), autotune=True)
    blanks = -bucket.clips("validation") % batch_size
    parse = parser(spec, bucket, 1)
    clips = tf.data.TFRecordDataset(files).map(without_autograph(lambda clip: parse(clip[tf.newaxis])))
    blank = tf.data.Dataset.from_tensors(blank_batch(batch_signature(spec, bucket, 1)))
    batches = clips.concatenate(blank.repeat(blanks)).rebatch(batch_size, drop_remainder=True)
    return _options(batches.prefetch(tf.data.AUTOTUNE), autotune=True)
