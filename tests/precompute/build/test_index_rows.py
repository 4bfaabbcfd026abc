"""The order of the index, and the sums that are taken while it is written."""

import math
import random

import pyarrow.parquet as pq
import pytest
from builds import build
from cache_files import index_path

from xtts.precompute.build.index_rows import ExactSum
from xtts.shared.cache.cache_spec import SPLITS
from xtts.shared.cache.clip_index import Kept, read_index
from xtts.shared.config_files import load_config

FLAGS = {"shapes.buckets": 3, "split.validation_fraction": 0.2, "shards.shard_mb": 1, "shapes.max_reject_fraction": 0.5}


@pytest.fixture(scope="module")
def built(tone_corpus, tmp_path_factory):
    """A corpus of which two clips are missing, and its cache; do not change them."""
    place = tmp_path_factory.mktemp("index")
    tone_corpus(place / "corpus", 150, seconds=(0.6, 1.5), seed=6)
    for number in (9, 100):
        (place / "corpus" / "wavs" / f"tone-{number:04d}.wav").unlink()
    build(place / "corpus", place / "cache", load_config("tiny", flags=FLAGS))
    return place


def test_kept_clips_are_in_the_order_of_their_places_and_rejected_ones_last(built):
    rows = read_index(index_path(built / "cache"))
    assert [isinstance(row, Kept) for row in rows] == 148 * [True] + 2 * [False]
    places = [(SPLITS.index(r.place.split), r.place.bucket, r.place.shard, r.written.position) for r in rows[:148]]
    assert places == sorted(places)
    assert [row.clip.id for row in rows[148:]] == ["tone-0009", "tone-0100"]


def test_no_row_group_is_of_two_buckets(built):
    with pq.ParquetFile(index_path(built / "cache")) as file:
        groups = [file.read_row_group(n, ["split", "bucket"]).to_pylist() for n in range(file.num_row_groups)]
        statistics = file.metadata.row_group(0).column(file.schema_arrow.get_field_index("bucket")).statistics
    assert len(groups) == 7  # six places and the rejected clips
    assert all(len({(row["split"], row["bucket"]) for row in group}) == 1 for group in groups)
    assert (statistics.min, statistics.max) == (0, 0)


def test_a_sum_shows_no_order():
    draw = random.Random(0)
    values = [draw.choice([1, -1]) * 10 ** draw.uniform(-20, 20) for _ in range(3000)]
    whole = math.fsum(values)
    for size in (1, 7, 1000):
        draw.shuffle(values)
        total = ExactSum()
        for start in range(0, len(values), size):
            total.add(values[start : start + size])
        assert total.value == whole
    assert sum(values) != whole
