"""The configuration against the cache and the corpus: mismatches, rejected clips and waste."""

from dataclasses import replace
from pathlib import Path

from xtts.shared.cache.cache_spec import CacheSpec
from xtts.shared.cache.stats import ClipLengths, corpus_stats, effect_of_caps
from xtts.shared.config import Config
from xtts.shared.errors import build_command
from xtts.shared.feature_settings import feature_config, feature_differences
from xtts.trainer.data.batch_sizes import batch_sizes, bucket_numbers
from xtts.trainer.data.training_bucket import bucket_order
from xtts.trainer.data.validation_clips import validation_records
from xtts.trainer.doctor.finding import Fact, Finding, Result, as_yaml

_TOLERATED_REJECTS = 0.01
"""A cap may reject this share of the clips: it is meant for a few outliers."""
_WORTHWHILE_FILL = 1.2
"""More buckets are advised if they raise the useful frames of a step by a fifth: each is another compilation."""
_NEAR_BEST_FILL = 0.97
_WORTHWHILE_FRAMES = 1.2
_TOLERATED_BLANKS = 0.1
"""Share of the training time that validation may spend on blank clips."""
_VALIDATION_COST = 1.0
"""Approximate work of a validation batch over a training step: forward only, but the decoder at four flow times."""
_USUAL_BATCH = 8
_MOST_SHUFFLING = 0.5
"""Share of the free memory that shuffled blocks may take."""
_CONSTANT_FRAMES_OFF = Finding(
    name="uneven-batches",
    section="config",
    what="training.constant_frames_per_batch is off: steps of short buckets do less work",
    cause="every bucket has the same batch size",
    setting="training.constant_frames_per_batch",
    value=True,
)
_PREFETCH_OFF = Finding(
    name="prefetch-off",
    section="config",
    what="data.prefetch_to_device is off",
    cause="every step waits for its batch to be copied into the GPU's memory",
    setting="data.prefetch_to_device",
    value=True,
    gain="the copy happens while the previous step runs",
)


def disagreements(config: Config, spec: CacheSpec, cache: Path) -> Result:
    """Feature settings that differ from those of the cache."""
    differences = feature_differences(spec.features, feature_config(config))
    text = f"{len(differences)} settings differ from the cache" if differences else "the settings of the cache"
    findings = [
        Finding(
            name="other-cache-settings",
            section="config",
            what=f"{key} is {as_yaml(wanted)}, the cache was built with {as_yaml(built)}",
            cause="shapes and features are fixed when the cache is built; xtts-train refuses to start",
            setting=key,
            value=built,
            fix=f"or {build_command(cache, config='<this configuration>')}",
            gain="training starts",
        )
        for key, built, wanted in differences
    ]
    return [Fact(name="features", value=[key for key, _, _ in differences], text=text)], findings


def caps(clips: ClipLengths, config: Config) -> Result:
    """Clips that `shapes.max_text_length` and `shapes.max_mel_frames` reject."""
    shapes = config.shapes
    effects = effect_of_caps(clips, max_text_length=shapes.max_text_length, max_mel_frames=shapes.max_mel_frames)
    text = ", ".join(f"{name} rejects {cap.rejected:,} of {cap.clips:,} clips" for name, cap in effects.items())
    findings = [
        Finding(
            name="clips-rejected",
            section="config",
            what=f"shapes.{name} {cap.limit} rejects {cap.rejected:,} of {cap.clips:,} clips ({cap.share:.1%})",
            cause=f"the longest clip has {cap.longest}; nothing is truncated, so a clip above the cap is left out",
            setting=f"shapes.{name}",
            value=cap.longest,
            fix="then run xtts-precompute build again",
            gain=f"{cap.rejected:,} more clips to train on, {cap.hours:.1f} hours",
        )
        for name, cap in effects.items()
        if cap.share > _TOLERATED_REJECTS
    ]
    counts = {name: cap.rejected for name, cap in effects.items()}
    return [Fact(name="caps", value=counts, text=text or "none")], findings


def padding(clips: ClipLengths, spec: CacheSpec) -> Result:
    """Share of padding, and the number of buckets that reduces it."""
    stats, now, used = corpus_stats(clips), spec.statistics.fill, len(spec.buckets)
    best = max(stats.padding_efficiency.values())
    enough = min(n for n, fill in stats.padding_efficiency.items() if fill >= _NEAR_BEST_FILL * best)
    text = (
        f"{now:.1%} of stored frames are useful in {used} buckets; {enough} best buckets: "
        f"{stats.padding_efficiency[enough]:.1%}"
    )
    fact = Fact(name="padding", value={"fill": now, "buckets": used, "fills": stats.padding_efficiency}, text=text)
    gain = stats.padding_efficiency[enough] / now
    if enough <= used or gain < _WORTHWHILE_FILL:
        return [fact], []
    finding = Finding(
        name="padding",
        section="config",
        what=f"{1 - now:.0%} of every step is padding",
        cause=f"{used} padded lengths for lengths that differ this much",
        setting="shapes.buckets",
        value=enough,
        fix="then run xtts-precompute build again",
        gain=f"{gain:.2f} times the useful frames a second: {now:.1%} of a step is useful now, then "
        f"{stats.padding_efficiency[enough]:.1%}; {enough} steps to compile instead of {used}",
    )
    return [fact], [finding]


def batches(
    config: Config, spec: CacheSpec, sizes: dict[int, int], ceiling_share: float | None, most: int | None
) -> Result:
    """Batch sizes against the number of clips.

    ceiling_share: FLOP/s of the steps over those of a matrix product on the device, if measured.
    most: the largest batch size expected to fit into memory, if known.
    """
    listed = ", ".join(f"{size} x {spec.buckets[n].frames}" for n, size in sizes.items())
    blank = blank_share(config, spec, sizes)
    facts = [
        Fact(name="batches", value={str(n): size for n, size in sizes.items()}, text=f"clips x frames: {listed}"),
        Fact(name="remainders", value=blank,
             text="training drops none, they open the next epoch; blank clips that fill validation batches "
                  f"cost {blank:.1%} of the training time"),
    ]  # fmt: skip
    findings = []
    longest = max(bucket_numbers(spec, "train"), key=lambda number: spec.buckets[number].frames)
    better = min(_USUAL_BATCH, spec.epoch_clips(spec.buckets[longest]), _USUAL_BATCH if most is None else most)
    if config.training.batch_size == 1 < better and config.training.max_batch_share == 1.0:
        findings.append(_batch_of_one(better, ceiling_share))
    if blank > _TOLERATED_BLANKS:
        findings.append(_blank_clips(config, spec, blank, most))
    return facts, findings


def _batch_of_one(better: int, ceiling_share: float | None) -> Finding:
    reached = f"the steps reach {ceiling_share:.1%} of this device's matrix product" if ceiling_share else ""
    return Finding(
        name="batch-of-one",
        section="config",
        what="training.batch_size is 1: a step works on a single clip",
        cause="the weights are read, and the optimizer runs, once per clip; small products do not fill a device",
        setting="training.batch_size",
        value=better,
        fix="or let --find-batch-size find the largest that fits",
        gain=f"up to {1 / ceiling_share:.0f} times the frames a second: {reached}" if ceiling_share else "",
    )


def blank_share(config: Config, spec: CacheSpec, sizes: dict[int, int]) -> float:
    """Share of the training time spent on blank clips of validation batches, counted in frames."""
    read = [sum(records) for records in validation_records(spec, config.training.validation_clips)]
    work = {n: -(-read[n] // size) * size for n, size in sizes.items()}
    blanks = sum((clips - read[n]) * spec.buckets[n].frames for n, clips in work.items())
    whole = sum(clips * spec.buckets[n].frames for n, clips in work.items())
    step = max(size * spec.buckets[n].frames for n, size in sizes.items())
    return _VALIDATION_COST * blanks / (config.training.validate_every * step + _VALIDATION_COST * whole)


def _blank_clips(config: Config, spec: CacheSpec, blank: float, most: int | None) -> Finding:
    now, micro = config.training.batch_size, config.training.gradient_accumulation_steps
    clips = sum(spec.epoch_clips(bucket) for bucket in spec.buckets)
    reach = now // 4 // micro * micro
    near = range(now - reach, min(now + reach, clips, now if most is None else most) + 1, micro)

    def cost(size: int) -> float:
        training = config.training.model_copy(update={"batch_size": size})
        return blank_share(config, spec, batch_sizes(spec, training))

    best = min(near, key=lambda size: (cost(size), abs(size - now)), default=now)
    every = config.training.validate_every * 4
    smaller = cost(best) < 0.5 * blank
    return Finding(
        name="blank-clips",
        section="config",
        what=f"blank clips in validation batches take {blank:.0%} of the training time",
        cause="the batch sizes do not divide the clips that validation reads, so its last batches are filled up",
        setting="training.batch_size" if smaller else "training.validate_every",
        value=best if smaller else every,
        gain=f"{blank - (cost(best) if smaller else blank / 4):.0%} less time",
    )


def reading(config: Config, spec: CacheSpec, sizes: dict[int, int], *, free_memory: int, gpu: bool) -> Result:
    """Settings that cost speed: shuffle memory, shard mixing, constant frames per batch, prefetching to the device."""
    stored = sum(shard.bytes for bucket in spec.buckets for shard in bucket.train)
    shuffling = min(config.data.shuffle_memory_mb << 20, 2 * stored)  # a clip is in two blocks at most
    gain = constant_frames_gain(config, spec, sizes)
    constant = "on" if config.training.constant_frames_per_batch else "off"
    mixed = one_shard_share(config, spec)
    fact = Fact(
        name="reading", value={"shuffle_bytes": shuffling, "one_shard_share": mixed, "constant_frames_gain": gain},
        text=f"blocks of {shuffling / 2**20:,.0f} MiB in memory, {free_memory / 2**20:,.0f} MiB free; "
             f"{mixed:.0%} of a batch from one shard; constant frames per batch {constant}",
    )  # fmt: skip
    findings = []
    if shuffling > _MOST_SHUFFLING * free_memory:
        findings.append(_shuffling(shuffling, free_memory))
    if gain > _WORTHWHILE_FRAMES:
        findings.append(replace(_CONSTANT_FRAMES_OFF, gain=f"{gain:.2f} times the frames per mean step"))
    if gpu and not config.data.prefetch_to_device:
        findings.append(_PREFETCH_OFF)
    return [fact], findings


def one_shard_share(config: Config, spec: CacheSpec) -> float:
    """Expected share of a batch that comes from one shard, the mean over all clips."""
    orders = [
        bucket_order(spec, number, seed=config.training.seed, memory_mb=config.data.shuffle_memory_mb)
        for number in bucket_numbers(spec, "train")
    ]
    return sum(order.clips * order.one_shard_share() for order in orders) / sum(order.clips for order in orders)


def _shuffling(shuffling: int, free_memory: int) -> Finding:
    return Finding(
        name="shuffle-memory",
        section="config",
        what=f"shuffled blocks take {shuffling / free_memory:.0%} of the free memory",
        cause="every bucket keeps a block being read and one in use",
        setting="data.shuffle_memory_mb",
        value=max(int(_MOST_SHUFFLING * free_memory / 2) >> 20, 1),
        gain="no swapping, and no run killed for lack of memory",
    )


def constant_frames_gain(config: Config, spec: CacheSpec, sizes: dict[int, int]) -> float:
    """Frames of a mean step with constant_frames_per_batch, relative to the configured batches."""
    training = config.training.model_copy(update={"constant_frames_per_batch": True})
    return _mean_frames(spec, batch_sizes(spec, training)) / _mean_frames(spec, sizes)


def _mean_frames(spec: CacheSpec, sizes: dict[int, int]) -> float:
    buckets = {number: spec.buckets[number] for number in bucket_numbers(spec, "train")}
    clips = {number: spec.epoch_clips(bucket) for number, bucket in buckets.items()}
    frames = sum(clips[number] * bucket.frames for number, bucket in buckets.items())
    return frames / sum(clips[number] / sizes[number] for number in buckets)
