"""A finished cache of 100,000 speakers, as the next build reads it."""

import time
from dataclasses import replace

from xtts.precompute.build.staging import _finished_shards
from xtts.shared.cache.cache_spec import Shard, load_spec
from xtts.shared.cache.clip_index import Place
from xtts.shared.cache.file_names import shard_file

SHARDS = 3000


def test_the_shards_of_a_cache_of_100000_speakers_are_recognised(tiny_cache, kept_row):
    """Each shard made a set of all speakers, and looked its own up in their list."""
    spec, places = load_spec(tiny_cache), [Place("train", 0, number) for number in range(SHARDS)]
    files = [shard_file(place, SHARDS) for place in places]
    shards = [Shard(file=file, records=1, bytes=1, sha256="0" * 64) for file in files]
    bucket = spec.buckets[0].model_copy(update={"train": shards, "validation": []})
    names = [f"speaker-{number:06d}" for number in range(100_000)]
    spec = spec.model_copy(update={"buckets": [bucket], "speakers": names})
    row = kept_row("a", 1, 1)
    rows = [replace(row, clip=replace(row.clip, id=f"clip-{n}", speaker=names[-1 - n]), place=places[n])
            for n in range(SHARDS)]  # fmt: skip
    began = time.process_time()
    found = _finished_shards(spec, rows)
    assert time.process_time() - began < 3
    assert list(found) == files
    swapped = [replace(row, clip=replace(row.clip, speaker=names[0])) for row in rows]
    assert all(found[file].settings != other.settings for file, other in _finished_shards(spec, swapped).items())
