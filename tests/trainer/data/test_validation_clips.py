"""The clips that validation reads, on which all its readers agree."""

import random
from types import SimpleNamespace

import numpy as np
import pytest

from xtts.shared.cache.cache_spec import load_spec
from xtts.shared.config_files import load_config
from xtts.trainer.data.batch_sizes import validation_records
from xtts.trainer.data.dataset import validation_batches
from xtts.trainer.data.training_bucket import training_buckets
from xtts.trainer.evaluation.evaluation_clips import shard_clips
from xtts.trainer.models.acoustic.samples import fixed_sentences


def records_read(stored, most):
    """Of so many records in each validation shard of each bucket."""
    shards = ([SimpleNamespace(records=records) for records in bucket] for bucket in stored)
    return validation_records(SimpleNamespace(buckets=[SimpleNamespace(validation=bucket) for bucket in shards]), most)


def clips_read(cache, bucket):
    return [
        clip
        for shard, records in zip(bucket.stored.validation, bucket.validation_records, strict=True)
        for clip in shard_clips(cache, bucket.spec, shard, records)
    ]


def test_of_many_clips_as_many_are_read_as_asked_for_from_every_shard_its_share():
    """Held out by shard and bucket as of a million clips: 50,000."""
    draw = random.Random(0)
    stored = [[draw.randint(100, 320) for _ in range(shards)] for shards in (80, 50, 40, 30, 20, 10, 5, 3)]
    for most in (1, 7, 1000, 2000, 40_000):
        assert sum(map(sum, records_read(stored, most))) == most
    share = 1000 / sum(map(sum, stored))
    for counts, records in zip(records_read(stored, 1000), stored, strict=True):
        assert sum(counts) == pytest.approx(share * sum(records), abs=len(records))
        assert all(abs(count - share * whole) < 1 for count, whole in zip(counts, records, strict=True))


def test_a_small_split_is_read_whole():
    stored = [[3, 4], [], [1]]
    assert [records_read(stored, most) for most in (None, 8, 9)] == [stored] * 3
    assert records_read(stored, 4) == [[2, 2], [], [0]]


def test_every_reader_takes_the_same_clips(tiny_cache):
    spec = load_spec(tiny_cache)
    held_out = sum(bucket.clips("validation") for bucket in spec.buckets)
    settings = ["shapes.buckets=2", "training.batch_size=3", f"training.validation_clips={held_out // 2}"]
    buckets = training_buckets(tiny_cache, spec, load_config("tiny", assignments=settings))
    assert sum(sum(bucket.validation_records) for bucket in buckets) == held_out // 2
    for bucket in buckets:
        assert bucket.validates == any(bucket.validation_records)
        read = clips_read(tiny_cache, bucket)
        if bucket.validates:
            batches = list(validation_batches(bucket))
            lengths = np.concatenate([batch.mel_length.numpy() for batch in batches])
            assert len(lengths) == -(-len(read) // bucket.batch_size) * bucket.batch_size
            assert lengths[: len(read)].tolist() == [len(clip.mel) for clip in read]
            assert not any(part[lengths[-bucket.batch_size :] == 0].numpy().any() for part in batches[-1]), "blank"
    number, sentences = fixed_sentences(tiny_cache, spec, 100, held_out // 2)
    taken = next(bucket for bucket in buckets if bucket.number == number)
    assert {clip.clip_id for clip in sentences} == {clip.clip_id for clip in clips_read(tiny_cache, taken)}
