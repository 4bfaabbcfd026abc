import shutil
import time

import forked_program
import numpy as np
import pytest
from one_bucket import one_bucket

from xtts.shared.cache.cache_spec import Shard, load_spec
from xtts.shared.cache.records import frame, parse_example, unframe
from xtts.trainer.data.batch import Batch, batch_signature, blank_batch
from xtts.trainer.data.clip_order import BucketOrder
from xtts.trainer.data.dataset import clip_stream, training_batches, validation_batches
from xtts.trainer.data.training_bucket import TrainingBucket, bucket_order
from xtts.trainer.doctor.checks.graph import dataset_ops, python_ops


@pytest.fixture(scope="module")
def spec(tiny_cache):
    return load_spec(tiny_cache)


@pytest.fixture(scope="module")
def stored(tiny_cache, spec):
    """Every record of one bucket and split, by (shard, position), read without TensorFlow."""

    def read(number, split):
        records = {}
        for i, shard in enumerate(spec.buckets[number].shards(split)):
            data = memoryview((tiny_cache / shard.file).read_bytes())
            for place, payload in enumerate(unframe(data, limit_bytes=1 << 24)):
                records[i, place] = parse_example(payload, mel_dtype=spec.mel_dtype, mel_channels=spec.mel_channels)
        return records

    return read


def test_batches_are_the_stored_clips_in_the_order_that_locate_names(tiny_cache, spec, stored):
    for number in range(len(spec.buckets)):
        bucket, records = one_bucket(tiny_cache, number, batch_size=2), stored(number, "train")
        order, batches = bucket.order, training_batches(bucket, 0)
        seen = []
        for tokens, mel, token_length, mel_length, *_ in batches.take(order.clips):
            seen += list(zip(tokens.numpy(), mel.numpy(), token_length.numpy(), mel_length.numpy(), strict=True))
        for (tokens, mel, tokens_used, frames), place in zip(seen, order.locate(0, len(seen)), strict=True):
            record = records[place]
            assert np.array_equal(tokens, record.tokens)
            assert mel.dtype == record.mel.dtype == spec.mel_dtype
            assert np.array_equal(mel, record.mel)
            assert (tokens_used, frames) == (record.token_length, record.mel_length)


def test_a_stream_continues_where_it_was_left(tiny_cache):
    bucket = one_bucket(tiny_cache, batch_size=1)
    order, whole = bucket.order, [batch.mel.numpy() for batch in training_batches(bucket, 0).take(30)]
    for consumed in (1, order.clips - 1, order.clips, order.clips + 2):
        for size in (1, 3):  # whatever the batch size that goes on
            count = (30 - consumed) // size
            rest = training_batches(one_bucket(tiny_cache, batch_size=size), consumed).take(count)
            found = np.concatenate([batch.mel.numpy() for batch in rest])
            assert np.array_equal(found, np.concatenate(whole[consumed : consumed + count * size]))


def test_reading_begins_with_the_iterator_and_not_with_the_first_batch(tiny_cache, spec, tmp_path):
    cache = shutil.copytree(tiny_cache, tmp_path / "cache")
    batches = iter(training_batches(one_bucket(cache, batch_size=2), 0))
    time.sleep(1)
    for shard in spec.buckets[0].train:
        (cache / shard.file).write_bytes(bytes(64))
    assert next(batches).mel_length.numpy().min() > 0


LAYOUTS = {
    "two groups": ((2, 3, 2, 1), 3, range(9)),
    "one shard longer than the others": ((2, 12, 1), 4, (5, 11, 17)),
    "one shard": ((9,), 4, (5, 11)),
    "blocks of one record": ((2, 3, 2, 1), 1, (5, 11)),
    "blocks of a whole group": ((2, 3, 2, 1), 100, (5, 11)),
}
"""Records of the shards, records of a block, positions."""


@pytest.mark.parametrize(("records", "block_records", "positions"), LAYOUTS.values(), ids=LAYOUTS)
def test_a_stream_is_what_locate_names_from_every_position(spec, tmp_path, records, block_records, positions):
    """A record is its own place here: (shard, position in it)."""
    shards = []
    for number, count in enumerate(records):
        file = f"train/bucket-00/shard-{number:05d}-of-{len(records):05d}.tfrecord"
        data = b"".join(frame(b"%d %d" % (number, place)) for place in range(count))
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_bytes(data)
        shards.append(Shard(file=file, records=count, bytes=len(data), sha256="0" * 64))
    made = spec.model_copy(update={"buckets": [spec.buckets[0].model_copy(update={"train": shards})]})
    order = BucketOrder(seed=7, bucket=0, shard_records=records, open_shards=3, block_records=block_records)
    for consumed in positions:
        bucket = TrainingBucket(cache=tmp_path, spec=made, number=0, batch_size=1, order=order)
        stream = clip_stream(bucket, consumed).take(order.clips + 3)
        found = [tuple(map(int, clip.split())) for clip in stream.as_numpy_iterator()]
        assert found == order.locate(consumed, order.clips + 3)


def test_batches_have_the_locked_signature(tiny_cache, spec):
    for number, bucket in enumerate(spec.buckets):
        signature = batch_signature(spec, bucket, 3)
        assert [part.name for part in signature] == list(Batch._fields)
        batches = training_batches(one_bucket(tiny_cache, number, batch_size=3), 0)
        for found, expected in zip(batches.element_spec, signature, strict=True):
            assert (found.shape, found.dtype) == (expected.shape, expected.dtype)


def test_no_python_runs_in_the_pipeline(tiny_cache):
    bucket = one_bucket(tiny_cache, batch_size=2)
    for dataset in (training_batches(bucket, 3), validation_batches(bucket)):
        ops = list(dataset_ops(dataset))
        assert any("ParseExample" in kind for kind, _ in ops)
        assert not python_ops(ops)


def test_validation_visits_every_clip_once_and_fills_up_with_blanks(tiny_cache, spec, stored):
    for number, bucket in enumerate(spec.buckets):
        clips = bucket.clips("validation")
        if not clips:
            continue
        batches = validation_batches(one_bucket(tiny_cache, number, batch_size=clips + 1))
        lengths = np.concatenate([batch.mel_length.numpy() for batch in batches])
        assert len(lengths) == clips + 1
        assert sorted(lengths[:clips]) == sorted(r.mel_length for r in stored(number, "validation").values())
        assert lengths[clips] == 0
        break
    else:
        pytest.fail("the fixture holds no validation clips")


def test_blocks_fit_the_memory_they_are_given(spec):
    orders = [bucket_order(spec, number, seed=5, memory_mb=1) for number in range(len(spec.buckets))]
    for order, bucket in zip(orders, spec.buckets, strict=True):
        record = max(shard.bytes / shard.records for shard in bucket.train)
        share = (1 << 20) / 2 / len(spec.buckets)
        assert 0.9 * share - record < order.block_records * record <= 1.01 * share


def test_a_blank_batch_holds_nothing(spec):
    blank = blank_batch(batch_signature(spec, spec.buckets[0], 2))
    assert not any(part.numpy().any() for part in blank)


TWO_DEVICES = """
import sys, pathlib, numpy as np, tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
from xtts.shared.cache.cache_spec import load_spec
from xtts.shared.config_files import load_config
from xtts.trainer.data.dataset import ahead_on, training_batches
from xtts.trainer.data.training_bucket import training_buckets
cache = pathlib.Path(sys.argv[1])
config = load_config("tiny", assignments=["training.batch_size=2"])
batches = [training_batches(bucket, 1) for bucket in training_buckets(cache, load_spec(cache), config)]
ahead = [iter(ahead_on(part, "/CPU:1")) for part in batches]

@tf.function
def read(place):
    return tf.switch_case(place, [lambda k=k: ahead[k].get_next() for k in range(2)])

for place, part in enumerate(batches):
    for expected in part.take(3):
        found = read(tf.constant(place))
        assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))
print(next(ahead[0]).mel.device)
"""


def test_batches_are_read_ahead_into_the_memory_of_a_device(tiny_cache):
    """A second logical CPU stands for the GPU: devices are fixed at the start of a process, hence another one."""
    done = forked_program.run(["-c", TWO_DEVICES, tiny_cache])
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith("CPU:1")
