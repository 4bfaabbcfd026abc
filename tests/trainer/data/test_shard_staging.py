"""Streams over shards that a thread copies out of an object store, in little room."""

import hashlib
import os
from dataclasses import replace
from itertools import islice

import pytest
import tensorflow as tf

from xtts.shared.cache.cache_copy import CacheCopy
from xtts.shared.cache.cache_spec import Shard
from xtts.shared.errors import LockstepError
from xtts.shared.storage.object_store import ObjectStore
from xtts.shared.storage.urls import location
from xtts.trainer.data.clip_order import BucketOrder
from xtts.trainer.data.dataset import _order_stream
from xtts.trainer.data.shard_staging import ShardStaging

SHARDS, RECORDS, RECORD_BYTES = 10, 6, 1000


@pytest.fixture(scope="module")
def stored(object_server, tmp_path_factory):
    """(URL, folder with the same files, the shards of each of two buckets)."""
    url, folder = location(f"{object_server.bucket()}/cache"), tmp_path_factory.mktemp("shards")
    store, buckets = ObjectStore(url), []
    for bucket in range(2):
        shards = []
        for number in range(SHARDS):
            file = f"train/bucket-{bucket:02d}/shard-{number:05d}-of-{SHARDS:05d}.tfrecord"
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            with tf.io.TFRecordWriter(str(folder / file)) as writer:
                for record in range(RECORDS):
                    writer.write(f"{bucket} {number} {record} ".encode() + os.urandom(RECORD_BYTES))
            data = (folder / file).read_bytes()
            store.write(file, data)
            digest = hashlib.sha256(data).hexdigest()
            shards.append(Shard(file=file, records=RECORDS, bytes=len(data), sha256=digest))
        buckets.append(shards)
    return url, folder, buckets


def order_of(bucket):
    """Two shards at a time, in blocks of five records."""
    return BucketOrder(seed=3, bucket=bucket, shard_records=(RECORDS,) * SHARDS, open_shards=2, block_records=5)


def stream(stored, bucket, consumed, staging=None):
    """The records of a bucket from a position on, from the folder or from copies."""
    _, folder, buckets = stored
    order, shards, gate = order_of(bucket), buckets[bucket], None
    if staging is not None:
        gate = staging.gate(order, shards, consumed, order.clips)
        folder = staging._copy.folder
    return _order_stream(order, [str(folder / shard.file) for shard in shards], consumed, gate).as_numpy_iterator()


def copy_of(stored, root, shards_at_once):
    """A copy in a folder that holds so many shards."""
    copy = CacheCopy(stored[0], stage=str(root))
    copy.stage.limit_bytes = shards_at_once * stored[2][0][0].bytes
    return copy


@pytest.mark.parametrize("consumed", [0, 34])
def test_streams_in_little_room_are_those_of_the_local_cache(stored, tmp_path, consumed):
    """Two streams of five groups of two shards, in the room of eight shards, for three epochs."""
    copy, most = copy_of(stored, tmp_path, 8), 0
    with ShardStaging(copy) as staging:
        staging.start([])
        streams = [(stream(stored, bucket, consumed), stream(stored, bucket, consumed, staging)) for bucket in (0, 1)]
        for number in range(3 * SHARDS * RECORDS):
            for local, staged in streams if number % 3 else streams[:1]:
                assert next(staged) == next(local)
            if number % 10 == 0:
                with copy.stage._in_turn():  # else a file may be counted under two names
                    most = max(most, sum(path.stat().st_size for path in tmp_path.rglob("shard-*")))
    assert 0 < most <= copy.stage.limit_bytes


def test_a_resumed_run_uses_what_is_there_and_copies_no_shard_again(stored, tmp_path):
    first = copy_of(stored, tmp_path, 100)
    first.fetch([shard for shards in stored[2] for shard in shards])
    first.stage.close()
    copy = copy_of(stored, tmp_path, 100)
    copy._store = None  # any request would fail
    with ShardStaging(copy) as staging:
        staging.start(stored[2][1][:2])
        staging.wait_for_validation()
        staged, local = stream(stored, 0, 7, staging), stream(stored, 0, 7)
        assert [next(staged) for _ in range(100)] == [next(local) for _ in range(100)]


def test_too_little_room_is_refused_at_once(stored, tmp_path):
    validation, streams = stored[2][1][:1], [(order_of(0), stored[2][0])]
    with (
        ShardStaging(copy_of(stored, tmp_path, 4)) as staging,
        pytest.raises(LockstepError, match=r"^data.stage_gb: .* holds too few shards of s3://.*, expected 1 or m"),
    ):
        staging.start(validation, streams)
    with ShardStaging(copy_of(stored, tmp_path, 5)) as staging:
        staging.start(validation, streams)
        staging.wait_for_validation()


def test_a_damaged_shard_ends_the_streams_with_an_error_that_names_it(stored, tmp_path):
    url, folder, (shards, other) = stored
    damaged = [replace_digest(shard) if number == 4 else shard for number, shard in enumerate(shards)]
    copy = copy_of(stored, tmp_path, 100)
    with pytest.raises(LockstepError, match=rf"^{url}/{shards[4].file}: .* twice, expected .* of SHA-256 00000000"):
        read_all((url, folder, (damaged, other)), copy)
    assert not copy.path(shards[4]).exists()


def read_all(stored, copy):
    """Read an epoch as the trainer does: what fails in the graph is an error of the steps."""
    with ShardStaging(copy) as staging:
        staging.start([])
        staged = stream(stored, 0, 0, staging)
        if len(list(islice(staged, SHARDS * RECORDS))) < SHARDS * RECORDS:
            raise LockstepError("the steps", found="no more clips")


def replace_digest(shard):
    return shard.model_copy(update={"sha256": "0" * 64})


def test_two_processes_share_a_folder_and_none_removes_what_the_other_uses(stored, tmp_path):
    shards = stored[2][0]
    one, other = copy_of(stored, tmp_path, 4), copy_of(stored, tmp_path, 4)
    one.fetch(shards[:3])
    assert other.stage.pin([other.path(shard) for shard in shards[:1]])
    with pytest.raises(LockstepError, match="no room: other processes use the copies"):
        other.fetch(shards[3:6])
    assert all(one.path(shard).exists() for shard in shards[:3])
    one.stage.close()
    other.fetch(shards[3:6])
    assert other.path(shards[0]).exists()
    assert not other.path(shards[1]).exists()


def test_an_order_knows_the_shards_of_a_group_and_where_it_begins():
    order = order_of(0)
    for consumed in (0, 11, 59, 60, 75, 130):
        place = order.find(consumed)
        shards, start = replace(order).group_at(place.group)
        assert shards == place.shards
        assert start == consumed - place.visited - place.start
