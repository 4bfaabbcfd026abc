"""Shards whose records are their own places, for tests of the order of clips."""

import pytest

from xtts.shared.cache.cache_spec import Shard, load_spec, with_digest
from xtts.shared.cache.records import frame
from xtts.trainer.data.dataset import clip_stream
from xtts.trainer.data.training_bucket import TrainingBucket


@pytest.fixture
def made(tiny_cache):
    """`made({"a": (3, 4), "b": (6,)}, b=0.5)`: a spec with one bucket of shards with so many clips, and weights."""

    def make(corpora, **weights):
        shards = []
        for name, records in corpora.items():
            for number, count in enumerate(records):
                middle = f"{name}-{number:05d}" if name else f"{number:05d}"
                file = with_digest(f"train/bucket-00/shard-{middle}-of-{len(records):05d}.tfrecord", "0" * 64)
                size = 100 * count
                digests = {"sha256": "0" * 64, "settings": "0" * 64}
                shards.append(Shard(file=file, records=count, bytes=size, **digests))
        spec = load_spec(tiny_cache)
        bucket = spec.buckets[0].model_copy(update={"train": shards, "validation": []})
        return spec.model_copy(update={"buckets": [bucket], "weights": weights})

    return make


@pytest.fixture
def assert_stream_reads_records(tmp_path):
    """`assert_stream_reads_records(spec, order, positions)`: an epoch from each position, read from real shards."""

    def check(spec, order, positions):
        for number, shard in enumerate(spec.buckets[0].train):
            (tmp_path / shard.file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / shard.file).write_bytes(b"".join(frame(b"%d %d" % (number, i)) for i in range(shard.records)))
        bucket = TrainingBucket(cache=tmp_path, spec=spec, number=0, batch_size=1, order=order, validation_records=[])
        for consumed in positions:
            stream = clip_stream(bucket, consumed).take(order.clips + 3)
            found = [tuple(map(int, clip.split())) for clip in stream.as_numpy_iterator()]
            assert found == order.records_from(consumed, order.clips + 3)

    return check
