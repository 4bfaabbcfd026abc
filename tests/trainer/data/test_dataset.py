import numpy as np
import pytest
from graph_walk import PYTHON_OPS, dataset_ops
from one_bucket import one_bucket

from xtts.shared.cache.cache_spec import load_spec
from xtts.shared.cache.records import parse_example, unframe
from xtts.trainer.data.batch import Batch
from xtts.trainer.data.clip_order import BucketCorpus, BucketOrder, CorpusMixture
from xtts.trainer.data.dataset import training_batches, validation_batches
from xtts.trainer.data.training_bucket import bucket_order


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
            for place, payload in enumerate(unframe(data)):
                records[i, place] = parse_example(payload, mel_dtype=spec.mel_dtype, mel_channels=spec.mel_channels)
        return records

    return read


@pytest.mark.parametrize(("size", "consumed"), [(2, 0), (1, 1), (3, 7)])
def test_batches_are_the_stored_clips_in_the_order_that_locate_names(tiny_cache, spec, stored, size, consumed):
    for number in range(len(spec.buckets)):
        bucket, records = one_bucket(tiny_cache, number, batch_size=size), stored(number, "train")
        order, batches = bucket.order, training_batches(bucket, consumed)
        assert [part.name for part in bucket.signature] == list(Batch._fields)
        for found, expected in zip(batches.element_spec, bucket.signature, strict=True):
            assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        seen = [clip for batch in batches.take(order.clips) for clip in zip(*batch, strict=True)]
        for clip, place in zip(seen, order.records_from(consumed, len(seen)), strict=True):
            tokens, mel, token_length, mel_length, *_ = (part.numpy() for part in clip)
            record = records[place]
            assert np.array_equal(tokens, record.tokens)
            assert mel.dtype == record.mel.dtype == spec.mel_dtype
            assert np.array_equal(mel, record.mel)
            assert (token_length, mel_length) == (record.token_length, record.mel_length)


LAYOUTS = {
    "two groups": ((2, 3, 2, 1), 3, (0, 4, 7)),
    "one shard longer than the others": ((2, 12, 1), 4, (5, 17)),
    "blocks of one record": ((2, 3, 2, 1), 1, (11,)),
}
"""Records of the shards, records of a block, positions."""


@pytest.mark.parametrize(("records", "block_records", "positions"), LAYOUTS.values(), ids=LAYOUTS)
def test_a_stream_reads_its_records(made, assert_stream_reads_records, records, block_records, positions):
    order = BucketOrder(seed=7, bucket=0, shard_records=records, open_shards=3, block_records=block_records)
    corpus = BucketCorpus(order=order, shards=tuple(range(len(records))), clips=sum(records))
    assert_stream_reads_records(made({"": records}), CorpusMixture(corpora=(corpus,)), positions)


def test_reading_begins_with_the_iterator(tiny_cache):
    """While the steps compile, not at the first batch."""
    assert training_batches(one_bucket(tiny_cache, batch_size=2), 0).options().experimental_warm_start


def test_no_python_runs_in_the_pipeline(tiny_cache):
    bucket = one_bucket(tiny_cache, batch_size=2)
    for dataset in (training_batches(bucket, 3), validation_batches(bucket)):
        ops = dataset_ops(dataset)
        assert any("ParseExample" in kind for kind in ops)
        assert not ops & {*PYTHON_OPS}


def test_blocks_fit_the_memory_they_are_given(spec):
    for number, bucket in enumerate(spec.buckets):
        (corpus,) = bucket_order(spec, number, seed=5, memory_mb=1).corpora
        record = max(shard.bytes / shard.records for shard in bucket.train)
        share = (1 << 20) / 2 / len(spec.buckets)
        assert 0.9 * share - record < corpus.order.block_records * record <= 1.01 * share
