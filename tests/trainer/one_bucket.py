"""One bucket of a cache as a run trains on it, with a batch size of the test's own."""

from xtts.shared.cache.cache_spec import load_spec
from xtts.trainer.data.batch_sizes import validation_records
from xtts.trainer.data.training_bucket import TrainingBucket, bucket_order


def one_bucket(cache, number=0, *, batch_size, seed=5, spec=None):
    """`spec`: in the place of the cache's own."""
    spec = spec or load_spec(cache)
    order = bucket_order(spec, number, seed=seed, memory_mb=64)
    validated = validation_records(spec, None)[number]
    return TrainingBucket(
        cache=cache, spec=spec, number=number, batch_size=batch_size, order=order, validation_records=validated
    )
