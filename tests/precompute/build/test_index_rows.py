"""The order of the index, the sums that are taken while it is written, and rows that are found again."""

import math
import random

import numpy as np
import pyarrow.parquet as pq
import pytest
from builds import build
from cache_files import index_path

from xtts.precompute.build.index_rows import ExactSum
from xtts.precompute.corpus.clip_digests import digest_columns
from xtts.precompute.corpus.corpora import read_corpora
from xtts.precompute.corpus.corpus_entries import parse_data
from xtts.precompute.corpus.listed_clips import list_clips, unpack
from xtts.precompute.features.earlier_rows import EarlierTask, find_rows, write_earlier
from xtts.precompute.features.row_parts import EARLIER_PARTS, take_rows, write_part
from xtts.shared.cache.cache_spec import SPLITS
from xtts.shared.cache.clip_index import Clip, Kept, Rejected, Rejection, read_index
from xtts.shared.cache.index_writer import index_bytes
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


def test_writing_the_rows_again_gives_the_same_bytes(built):
    path = index_path(built / "cache")
    assert index_bytes(read_index(path)) == path.read_bytes()


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


def test_rows_of_earlier_builds_are_found_by_their_ids(tmp_path, kept_row):
    """A repeated id has only the row of its first line, and one that is no more has none."""
    rows = [kept_row(f"clip-{n}", 9, 99) for n in range(50)]
    again = Rejected(clip=Clip("clip-7", "", "", "x.wav", duplicate=True), rejection=Rejection("duplicate id"))
    write_part(tmp_path / "source.arrow", [*rows[25:], again, *rows[:25]])
    earlier = write_earlier(tmp_path, 3, [""], EarlierTask(number=4, source=tmp_path / "source.arrow"))
    ids = ["clip-49", "new", "clip-7", "clip-0"]
    found = find_rows(earlier, *digest_columns(3, ids))
    known = found[found >= 0]
    assert (found >= 0).tolist() == [True, False, True, True]
    assert take_rows(tmp_path, EARLIER_PARTS, earlier.spots(known)) == [rows[49], rows[7], rows[0]]
    assert (find_rows(earlier, *digest_columns(4, ids)) == -1).all()  # of another seed


def test_a_list_read_in_chunks_is_the_list(built, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    entries = parse_data(built / "corpus")
    _, clips = list_clips(entries, None, limit=None, numbers_in_words=None, seed=0)
    whole = read_corpora(entries).clips
    assert list(clips) == whole
    assert len(clips) == len(whole) == 150
    sizes = [len(unpack(clips.packed(number))) for number in range(len(clips.starts) - 1)]
    assert sizes == np.diff(clips.starts).tolist() == [64, 64, 22]
    assert not list(tmp_path.iterdir())  # a build that is killed leaves nothing
