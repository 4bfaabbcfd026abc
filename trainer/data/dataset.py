"""Batches from shards: TFRecord and `tf.io.parse_example`, with shapes and types from the cache spec."""

from collections.abc import Callable
from typing import TypeVar, cast

import tensorflow as tf

from xtts.shared.cache.cache_spec import CacheSpec
from xtts.trainer.data.batch import AnyBatch, Batch, blank_batch, is_locked, with_tensors
from xtts.trainer.data.clip_order import BucketOrder, part_size
from xtts.trainer.data.training_bucket import TrainingBucket

F = TypeVar("F", bound=Callable[..., object])


def without_autograph(function: F) -> F:
    """Switch AutoGraph off for a function without Python control flow."""
    return cast(F, tf.autograph.experimental.do_not_convert(function))


def parser(bucket: TrainingBucket, batch_size: int | None) -> Callable[[tf.Tensor], AnyBatch]:
    """Return a function from serialized clips, string[B], to a batch of the bucket's shape."""
    spec, signature = bucket.spec, bucket.signature_of(batch_size)
    raw, integer = tf.io.FixedLenFeature([], tf.string), tf.io.FixedLenFeature([], tf.int64)
    features = {field.name: raw if field.shape.rank > 1 else integer for field in signature}
    if isinstance(signature, Batch):
        padded_length = signature.tokens.shape[1]
        # Unpadded clips are padded with 0 to the longest of the batch.
        unpadded = tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True)
        features["tokens"] = tf.io.FixedLenFeature([padded_length], tf.int64) if padded_length else unpadded
        # A cache of one language does not store it.
        features["language"] = tf.io.FixedLenFeature([], tf.int64, default_value=0)

    @without_autograph
    def parse(serialized: tf.Tensor) -> AnyBatch:
        parsed = tf.io.parse_example(serialized, features)
        for field in signature:
            if not is_locked(signature) and field.name == "mel":
                parsed["mel"] = padded_mels(parsed["mel"], parsed["mel_length"], spec)
            elif features[field.name] is raw:
                parsed[field.name] = tf.reshape(tf.io.decode_raw(parsed[field.name], field.dtype), field.shape)
        return with_tensors(signature, (tf.ensure_shape(tf.cast(parsed[x.name], x.dtype), x.shape) for x in signature))

    return parse


def padded_mels(raw: tf.Tensor, mel_length: tf.Tensor, spec: CacheSpec) -> tf.Tensor:
    """string[B], mel_length int64[B] -> stored type [B, T, M]: padded with silence to the batch's longest clip."""
    dtype = tf.as_dtype(spec.mel_dtype)
    bits = {tf.float16: tf.int16, tf.float32: tf.int32}[dtype]  # decoding to a fixed length lacks float16
    mel = tf.io.decode_raw(raw, bits, fixed_length=tf.reduce_max(tf.strings.length(raw)))
    mel = tf.reshape(tf.bitcast(mel, dtype), [tf.shape(raw)[0], -1, spec.mel_channels])
    frame_mask = tf.sequence_mask(mel_length, tf.shape(mel)[1])[..., tf.newaxis]
    return tf.where(frame_mask, mel, tf.constant(spec.mel_profile.silence, dtype))


def _options(dataset: tf.data.Dataset, *, autotune: bool) -> tf.data.Dataset:
    options = tf.data.Options()
    options.deterministic = True
    options.autotune.enabled = autotune
    options.experimental_warm_start = True  # read while the steps compile, not at the first batch
    options.experimental_optimization.map_parallelization = True
    return dataset.with_options(options)


def _read_in_turn(files: tf.Tensor, records: tf.Tensor, begins: tf.Tensor, before: tf.Tensor) -> tf.data.Dataset:
    """Serialized clips, string[] each, round-robin over shards: all `records` of each but the first `before`.

    Each shard is read from record `begins` and wraps around, without a buffer, which would copy each record again: the
    kernel already reads ahead. files: string[N], the others: int64[N].
    """
    passed = begins + before
    again = tf.maximum(passed - records, 0)

    @without_autograph
    def read(file: tf.Tensor, passed: tf.Tensor, again: tf.Tensor, begin: tf.Tensor) -> tf.data.Dataset:
        stored = tf.data.TFRecordDataset(file, buffer_size=0)
        return stored.skip(passed).concatenate(stored.skip(again).take(begin - again))

    shard_reads = tf.data.Dataset.from_tensor_slices((files, passed, again, begins))
    return shard_reads.interleave(read, cycle_length=tf.size(files, tf.int64), block_length=1)


def clip_stream(bucket: TrainingBucket, consumed: int) -> tf.data.Dataset:
    """Endless data set of serialized clips, string[] each, from the stream's position `consumed` on."""
    order, files = bucket.order, bucket.files("train")
    streams = [
        _order_stream(corpus.order, [files[shard] for shard in corpus.shards], position)
        for corpus, position in zip(order.corpora, order.positions(consumed), strict=True)
    ]
    if len(streams) == 1:
        return streams[0]
    choices = tf.data.Dataset.from_tensor_slices(order.corpus_of_clip).repeat().skip(consumed % order.clips)
    return tf.data.Dataset.choose_from_datasets(streams, choices)


def _order_stream(order: BucketOrder, paths: list[str], consumed: int) -> tf.data.Dataset:
    """`clip_stream` of one corpus.

    To reach the position it skips the records of at most one group, reading only their lengths, then reads one block
    and drops the clips already consumed. Memory holds the block in use, the next one and the record being read.
    """
    files = tf.constant(paths)
    records = tf.constant(order.shard_records, tf.int64)
    first = order.find(consumed)

    @without_autograph
    def blocks(group: tf.Tensor, shards: tf.Tensor, begins: tf.Tensor, before: tf.Tensor) -> tf.data.Dataset:
        """(group, index in it, clips string[<= block_records]) of each block that follows the `before` records."""
        counts = tf.gather(records, shards)
        size = part_size(tf.reduce_sum(counts), order.block_records)
        stored = _read_in_turn(tf.gather(files, shards), counts, begins, before).batch(size)
        indexed = stored.enumerate(tf.reduce_sum(before) // size)
        # Synchronous: tf.data would hold as many blocks as it has threads.
        return indexed.map(without_autograph(lambda index, clips: (group, index, clips)), synchronous=True)

    @without_autograph
    def whole_group(group: tf.Tensor) -> tf.data.Dataset:
        shards, begins = order.group_shards(group)
        return blocks(group, shards, begins, tf.zeros_like(begins))

    @without_autograph
    def visit(group: tf.Tensor, block: tf.Tensor, clips: tf.Tensor) -> tf.data.Dataset:
        again = (group == first.group) & (block == first.block)
        visited = tf.where(again, tf.constant(first.consumed, tf.int64), tf.constant(0, tf.int64))
        # Slices of a block share its memory until they are batched: a clip is copied once, and no function is called
        # for it, which would cost as much as several copies.
        return order.shuffled(tf.data.Dataset.from_tensor_slices(clips), tf.size(clips), group, block).skip(visited)

    reads = (tf.constant(values, tf.int64) for values in (first.group, *order.block_reads(first)))
    groups = blocks(*reads).concatenate(tf.data.Dataset.counter(first.group + 1).flat_map(whole_group))
    return groups.prefetch(1).flat_map(visit)  # read one block ahead


def training_batches(bucket: TrainingBucket, consumed: int, rows: range | None = None) -> tf.data.Dataset:
    """Endless data set of `Batch`es of one bucket, from the stream's position `consumed` on; two are prefetched.

    rows: the clips of each batch to parse, without a gap; None for all.

    One thread reads blocks and one parses batches: more threads, or autotuning them, gave no measurable gain
    (docs/experiments.md).
    """
    clips, size = clip_stream(bucket, consumed), bucket.batch_size if rows is None else len(rows)
    batches = clips.batch(bucket.batch_size, drop_remainder=True)
    if rows is not None:
        batches = batches.map(without_autograph(lambda clips: clips[rows.start : rows.stop]), synchronous=True)
    parsed = batches.map(parser(bucket, size), synchronous=True)
    return _options(parsed.prefetch(2), autotune=False)


def validation_batches(bucket: TrainingBucket) -> tf.data.Dataset:
    """Every clip of one bucket that validation reads once; padding rows fill the last batch.

    If clips are stored unpadded, the last batch may be smaller instead.
    """
    records = bucket.validation_records
    shards = tf.data.Dataset.from_tensor_slices((bucket.files("validation"), tf.constant(records, tf.int64)))
    clips = shards.flat_map(without_autograph(lambda file, count: tf.data.TFRecordDataset(file).take(count)))
    if not is_locked(bucket.signature):
        batches = clips.batch(bucket.batch_size).map(parser(bucket, None))
        return _options(batches.prefetch(1), autotune=True)
    parse, missing = parser(bucket, 1), -sum(records) % bucket.batch_size
    padding = tf.data.Dataset.from_tensors(blank_batch(bucket.signature_of(1))).repeat(missing)
    parsed = clips.map(without_autograph(lambda clip: parse(clip[tf.newaxis])))
    batches = parsed.concatenate(padding).rebatch(bucket.batch_size, drop_remainder=True)
    return _options(batches.prefetch(tf.data.AUTOTUNE), autotune=True)
