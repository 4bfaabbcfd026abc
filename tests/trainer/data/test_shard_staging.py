"""Streams over shards that a thread copies out of an object store, in little room.

Arrow's local file system stands for the store: tests/shared/storage and run/test_train_from_store.py have a server.
"""

import hashlib
import os
from itertools import islice
from types import SimpleNamespace

import pytest
import tensorflow as tf
from pyarrow.fs import LocalFileSystem

from xtts.shared.cache.cache_copy import CacheCopy
from xtts.shared.cache.cache_spec import Shard
from xtts.shared.errors import LockstepError
from xtts.shared.storage.urls import location
from xtts.trainer.data.clip_order import BucketOrder
from xtts.trainer.data.corpus_mixture import CorpusMixture, CorpusPart
from xtts.trainer.data.dataset import _order_stream, clip_stream
from xtts.trainer.data.shard_staging import ShardStaging

SHARDS, RECORDS, RECORD_BYTES = 8, 4, 1000
URL = location("s3://bucket/cache")


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """(folder of the store, the shards of each of two buckets)."""
    folder, buckets = tmp_path_factory.mktemp("shards"), []
    for bucket in range(2):
        shards = []
        for number in range(SHARDS):
            file = f"train/bucket-{bucket:02d}/shard-{number:05d}-of-{SHARDS:05d}.tfrecord"
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            with tf.io.TFRecordWriter(str(folder / file)) as writer:
                for record in range(RECORDS):
                    writer.write(f"{bucket} {number} {record} ".encode() + os.urandom(RECORD_BYTES))
            data = (folder / file).read_bytes()
            digest = hashlib.sha256(data).hexdigest()
            shards.append(Shard(file=file, records=RECORDS, bytes=len(data), sha256=digest))
        buckets.append(shards)
    return folder, buckets


def order_of(bucket):
    """Two shards at a time, in blocks of three records."""
    return BucketOrder(seed=3, bucket=bucket, shard_records=(RECORDS,) * SHARDS, open_shards=2, block_records=3)


def stream(stored, bucket, consumed, staging=None):
    """The records of a bucket from a position on, from the store's folder or from copies."""
    folder, buckets = stored
    order, shards, gate = order_of(bucket), buckets[bucket], None
    if staging is not None:
        gate = staging.gate(order, shards, consumed, order.clips)
        folder = staging._copy.folder
    return _order_stream(order, [str(folder / shard.file) for shard in shards], consumed, gate).as_numpy_iterator()


def copy_of(stored, root, shards_at_once):
    """A copy in a folder that holds so many shards."""
    copy = CacheCopy(URL, stage=str(root))
    copy.stage.limit_bytes = shards_at_once * stored[1][0][0].bytes
    copy._store.__dict__["_opened"] = LocalFileSystem(), str(stored[0])  # in the place of a connection
    return copy


def test_streams_in_little_room_are_those_of_the_local_cache(stored, tmp_path):
    """Two streams of four groups of two shards, in the room of eight shards, from the first epoch to the third."""
    copy, most, consumed = copy_of(stored, tmp_path, 8), 0, 20
    with ShardStaging(copy) as staging:
        staging.start([])
        streams = [(stream(stored, bucket, consumed), stream(stored, bucket, consumed, staging)) for bucket in (0, 1)]
        for number in range(2 * SHARDS * RECORDS):
            for local, staged in streams if number % 3 else streams[:1]:
                assert next(staged) == next(local)
            if number % 10 == 0:
                with copy.stage._in_turn():  # else a file may be counted under two names
                    most = max(most, sum(path.stat().st_size for path in tmp_path.rglob("shard-*")))
    assert 0 < most <= copy.stage.limit_bytes


def test_a_resumed_run_uses_what_is_there_and_copies_no_shard_again(stored, tmp_path):
    first = copy_of(stored, tmp_path, 100)
    first.fetch([shard for shards in stored[1] for shard in shards])
    first.stage.close()
    copy = copy_of(stored, tmp_path, 100)
    copy._store = None  # any request would fail
    with ShardStaging(copy) as staging:
        staging.start(stored[1][1][:2])
        staging.wait_for_validation()
        staged, local = stream(stored, 0, 7, staging), stream(stored, 0, 7)
        assert [next(staged) for _ in range(100)] == [next(local) for _ in range(100)]


def test_too_little_room_is_refused_at_once(stored, tmp_path):
    validation, streams = stored[1][1][:1], [(order_of(0), stored[1][0])]
    with (
        ShardStaging(copy_of(stored, tmp_path, 4)) as staging,
        pytest.raises(LockstepError, match=r"^data.stage_gb: .* holds too few shards of s3://.*, expected 1 or m"),
    ):
        staging.start(validation, streams)
    with ShardStaging(copy_of(stored, tmp_path, 5)) as staging:
        staging.start(validation, streams)
        staging.wait_for_validation()
    shards, one, other = stored[1][0], copy_of(stored, tmp_path, 4), copy_of(stored, tmp_path, 4)
    one.fetch(shards[:3])
    with pytest.raises(LockstepError, match="no room: other processes use the copies"):
        other.fetch(shards[3:6])
    assert all(one.path(shard).exists() for shard in shards[:3])


def test_a_damaged_shard_ends_the_streams_with_an_error_that_names_it(stored, tmp_path):
    folder, (shards, other) = stored
    damaged = [*shards[:4], shards[4].model_copy(update={"sha256": "0" * 64}), *shards[5:]]
    copy = copy_of(stored, tmp_path, 100)

    def read_all():
        """Read an epoch as the trainer does: what fails in the graph is an error of the steps."""
        with ShardStaging(copy) as staging:
            staging.start([])
            staged = stream((folder, (damaged, other)), 0, 0, staging)
            if len(list(islice(staged, SHARDS * RECORDS))) < SHARDS * RECORDS:
                raise LockstepError("the steps", found="no more clips")

    with pytest.raises(LockstepError, match=rf"^{URL}/{shards[4].file}: .* twice, expected .* of SHA-256 00000000"):
        read_all()
    assert not copy.path(shards[4]).exists()


def test_a_mixture_ends_with_the_first_of_its_streams(stored):
    """The others would go on in another order, without the clips that could not be copied."""
    folder, buckets = stored
    parts = tuple(
        CorpusPart(order=order_of(bucket), shards=tuple(range(bucket * SHARDS, (bucket + 1) * SHARDS)), clips=30)
        for bucket in (0, 1)
    )
    mixture = SimpleNamespace(
        order=CorpusMixture(seed=3, parts=parts), parts=parts,
        files=lambda split: [str(folder / shard.file) for shards in buckets for shard in shards],
        gate=lambda part, position: (lambda group: tf.constant(False)) if part is parts[1] else None,
    )  # fmt: skip
    assert len(list(clip_stream(mixture, 0).take(10))) <= 1
