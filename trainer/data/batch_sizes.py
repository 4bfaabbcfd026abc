"""B of every bucket, and the clips that validation reads; computed before TensorFlow is imported."""

from collections.abc import Mapping
from math import inf
from typing import NamedTuple

from xtts.shared.cache.cache_spec import CacheSpec
from xtts.shared.config import Config, TrainingConfig
from xtts.shared.errors import LockstepError


class AutomaticSteps(NamedTuple):
    """The steps of `training.epochs: auto`."""

    epochs: int
    fewest: int
    most: int
    most_epochs: float = inf
    """Passes over the corpus that `fewest` asks for at most: a tiny corpus is learnt by heart before."""


def trained_buckets(spec: CacheSpec) -> list[int]:
    """Numbers of the buckets with training clips."""
    return [number for number, bucket in enumerate(spec.buckets) if bucket.clips("train")]


def batch_sizes(spec: CacheSpec, training: TrainingConfig) -> dict[int, int]:
    """B by bucket number: `batch_size` in the longest bucket, more in shorter ones for equal frames per step.

    A bucket's B is a multiple of `gradient_accumulation_steps` and at most its number of clips in an epoch, so that no
    clip occurs twice in a step, unless its corpus has a weight above 1. A bucket with validation clips only is not
    accumulated.
    """
    micro = training.gradient_accumulation_steps
    clips = sum(spec.epoch_clips(bucket) for bucket in spec.buckets)
    if not clips:
        raise LockstepError("the cache", found="no training clips", fix="build it with more clips")
    most_frames = max(spec.buckets[number].frames for number in trained_buckets(spec))
    sizes, validated = {}, validation_records(spec, training.validation_clips)
    for number, bucket in enumerate(spec.buckets):
        frames = most_frames if training.constant_frames_per_batch else bucket.frames
        size = training.batch_size * frames // bucket.frames
        trained, validation_clips = spec.epoch_clips(bucket), sum(validated[number])
        if 0 < trained < micro:
            raise LockstepError(
                "training.gradient_accumulation_steps",
                found=f"{micro} micro-batches per update, but bucket {number:02d} ({bucket.tokens} tokens, "
                f"{bucket.frames} frames) has {trained} training clips",
                fix=f"set it to {trained} or less, or build the cache with fewer shapes.buckets",
            )
        if trained:
            sizes[number] = min(size, trained) // micro * micro
        elif validation_clips:
            sizes[number] = min(size, validation_clips)
    return sizes


def typical_update(spec: CacheSpec, sizes: Mapping[int, int]) -> tuple[float, float]:
    """(useful frames, useful tokens) of an average update, over an epoch of batches of these sizes."""
    clips = {number: spec.epoch_clips(spec.buckets[number]) for number in trained_buckets(spec)}
    updates = sum(count / sizes[number] for number, count in clips.items())
    statistics = spec.statistics
    share = sum(clips.values()) / updates / statistics.clips
    return share * statistics.frames, share * statistics.tokens


def for_corpus(config: Config, spec: CacheSpec, automatic: AutomaticSteps) -> Config:
    """The configuration with the `training.batch_size` and the `training.steps` that suit the corpus.

    The batch is limited to the corpus' training clips and to `training.max_batch_share`; `training.epochs`, if set,
    decides the steps, with `auto` by `automatic`.
    """
    training = config.training
    training = training.model_copy(update={"batch_size": _largest_batch(spec, training)})
    if training.epochs is not None:
        epochs = automatic.epochs if training.epochs == "auto" else training.epochs
        updates = [
            (spec.epoch_clips(spec.buckets[number]), size) for number, size in batch_sizes(spec, training).items()
        ]
        steps = sum(epochs * clips // size for clips, size in updates)
        if training.epochs == "auto":
            learnt = sum(automatic.most_epochs * clips / size for clips, size in updates)
            steps = min(max(steps, int(min(automatic.fewest, learnt))), automatic.most)
        training = training.model_copy(update={"steps": steps})
    return config.model_copy(update={"training": training})


def _largest_batch(spec: CacheSpec, training: TrainingConfig) -> int:
    """`batch_size`, limited by the clips and `max_batch_share` to a multiple of the micro-batches."""
    buckets = [spec.buckets[number] for number in trained_buckets(spec)]
    most_frames = max((bucket.frames for bucket in buckets), default=1)
    stored = sum(spec.epoch_clips(bucket) * bucket.frames for bucket in buckets)
    micro, share = training.gradient_accumulation_steps, training.max_batch_share
    clips = sum(spec.epoch_clips(bucket) for bucket in buckets)
    allowed = int(share * stored / most_frames) if share < 1.0 else clips
    return min(training.batch_size, max(allowed // micro * micro, micro))


def validation_records(spec: CacheSpec, most: int | None) -> list[list[int]]:
    """Clips to read from the start of each validation shard, by bucket; all of them if there are at most `most`.

    A shard is ordered by the digests of its ids, so its start is a fixed choice among its clips. Every shard gives its
    share, rounded so that all give `most` together: the choice follows from `cache.json`, is the same on every machine,
    keeps the proportions of buckets and corpora, and hardly changes as clips come and go.
    """
    stored = [[shard.records for shard in bucket.validation] for bucket in spec.buckets]
    clips = sum(map(sum, stored))
    if most is None or clips <= most:
        return stored
    taken = [[most * records // clips for records in shards] for shards in stored]
    by_rest = [(-(most * records % clips), bucket, shard)
               for bucket, counts in enumerate(stored) for shard, records in enumerate(counts)]
    for _, bucket, shard in sorted(by_rest)[: most - sum(map(sum, taken))]:
        taken[bucket][shard] += 1
    return taken
