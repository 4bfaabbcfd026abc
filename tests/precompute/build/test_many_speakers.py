"""A cache of very many speakers is continued without looking each clip's speaker up in a list of them all."""

import time

from xtts.precompute.build.staging import Prior
from xtts.shared.cache.cache_spec import load_spec


def test_the_settings_of_shards_among_100000_speakers(tiny_cache):
    spec = load_spec(tiny_cache).model_copy(update={"speakers": [f"speaker-{i:06d}" for i in range(100_000)]})
    prior, own = Prior(spec=spec, shards={}), spec.speakers[-500:]
    began = time.process_time()
    found = {prior.settings_of(0, own[number:]) for number in range(200)}
    assert time.process_time() - began < 3
    assert len(found) == 200
    assert prior.settings_of(0, own) == prior.settings_of(0, [*reversed(own), "nobody that it knows"])
