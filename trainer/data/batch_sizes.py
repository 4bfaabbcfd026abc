"""B of every bucket, from the cache and the configuration; runs before TensorFlow is imported."""

from xtts.shared.cache.cache_spec import CacheSpec, Split
from xtts.shared.config import Config, TrainingConfig
from xtts.shared.errors import LockstepError
from xtts.trainer.data.validation_clips import validation_records


def bucket_numbers(spec: CacheSpec, split: Split) -> list[int]:
    """Numbers of the buckets with clips in a split."""
    return [number for number, bucket in enumerate(spec.buckets) if bucket.clips(split)]


def batch_sizes(spec: CacheSpec, training: TrainingConfig) -> dict[int, int]:
    """B by bucket number: `batch_size` in the longest bucket, more clips in shorter ones for as many frames per step.

    A bucket's B is a multiple of `gradient_accumulation_steps` and at most its number of clips in an epoch, so that no
    clip occurs twice in a step, unless its corpus has a weight above 1. A bucket with validation clips only is not
    accumulated.
    """
    micro = training.gradient_accumulation_steps
    clips = sum(spec.epoch_clips(bucket) for bucket in spec.buckets)
    if training.batch_size > clips:
        raise LockstepError(
            "training.batch_size",
            found=f"{training.batch_size} clips per step, the cache has {clips} training clips",
            fix=f"set it to {clips} or less" if clips else "build the cache with more clips",
        )
    most_frames = max(spec.buckets[number].frames for number in bucket_numbers(spec, "train"))
    sizes, validated = {}, validation_records(spec, training.validation_clips)
    for number, bucket in enumerate(spec.buckets):
        size = (
            training.batch_size * most_frames // bucket.frames
            if training.constant_frames_per_batch
            else training.batch_size
        )
        trained, held_out = spec.epoch_clips(bucket), sum(validated[number])
        if 0 < trained < micro:
            raise LockstepError(
                "training.gradient_accumulation_steps",
                found=f"{micro} micro-batches per update, bucket {number:02d} ({bucket.tokens} tokens, "
                f"{bucket.frames} frames) has {trained} training clips",
                fix=f"set it to {trained} or less, or build the cache with fewer shapes.buckets",
            )
        if trained:
            sizes[number] = min(size, trained) // micro * micro
        elif held_out:
            sizes[number] = min(size, held_out)
    return sizes


def with_steps(config: Config, spec: CacheSpec, sizes: dict[int, int]) -> Config:
    """The configuration with `training.steps` computed from `training.epochs`, where that is set."""
    epochs = config.training.epochs
    if epochs is None:
        return config
    steps = sum(epochs * spec.epoch_clips(spec.buckets[number]) // size for number, size in sizes.items())
    return config.model_copy(update={"training": config.training.model_copy(update={"steps": steps})})
