"""B of every bucket, from the cache and the configuration; runs before TensorFlow is imported."""

from xtts.shared.cache_spec import CacheSpec
from xtts.shared.config import Config, TrainingConfig
from xtts.shared.errors import LockstepError


def training_buckets(spec: CacheSpec) -> list[int]:
    """Numbers of the buckets that hold training clips: the closed set of training shapes."""
    return [number for number, bucket in enumerate(spec.buckets) if bucket.clips("train")]


def batch_sizes(spec: CacheSpec, training: TrainingConfig) -> dict[int, int]:
    """B by bucket number: `batch_size` in the tallest, more clips in shorter ones so that frames per step stay level.

    A bucket's B is a multiple of `gradient_accumulation_steps` and, where that allows, no larger than its clips.
    """
    micro = training.gradient_accumulation_steps
    clips = sum(bucket.clips("train") for bucket in spec.buckets)
    if training.batch_size > clips:
        raise LockstepError(
            "training.batch_size",
            found=f"{training.batch_size} clips a step, the cache has {clips} training clips",
            fix=f"set it to {clips} or less" if clips else "build the cache with more clips",
        )
    tallest = max(spec.buckets[number].frames for number in training_buckets(spec))
    sizes = {}
    for number, bucket in enumerate(spec.buckets):
        level = training.batch_size * tallest // bucket.frames if training.level_batches else training.batch_size
        available = bucket.clips("train") or bucket.clips("validation")
        if available:
            sizes[number] = max(min(level, available) // micro, 1) * micro
    return sizes


def with_steps(config: Config, spec: CacheSpec, sizes: dict[int, int]) -> Config:
    """The configuration with `training.steps` worked out from `training.epochs`, where that is set."""
    epochs = config.training.epochs
    if epochs is None:
        return config
    steps = sum(epochs * spec.buckets[number].clips("train") // size for number, size in sizes.items())
    return config.model_copy(update={"training": config.training.model_copy(update={"steps": steps})})
