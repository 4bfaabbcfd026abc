"""The cache and the configuration, loaded before TensorFlow is imported and checked against each other."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from xtts.shared.cache.cache_spec import CacheSpec
from xtts.shared.cache.quick_check import quick_check
from xtts.shared.cache.stats import corpus_stats, read_lengths
from xtts.shared.config import Config
from xtts.shared.errors import LockstepError, build_command
from xtts.shared.feature_settings import feature_config, feature_differences
from xtts.trainer.data.batch_sizes import batch_sizes
from xtts.trainer.doctor.results import Fact, Findings, Problem, as_yaml
from xtts.trainer.run.setup import Setup, prepare

if TYPE_CHECKING:
    import pyarrow as pa

_TOLERATED_REJECTS = 0.01
"""Share of the clips that a cap may reject: it is meant for a few outliers."""
_WORTHWHILE_FILL = 1.2
"""Advise more buckets if they raise the useful frames of a step by a fifth: each is another compilation."""
_NEAR_BEST_FILL = 0.97


def load_setup(
    config: Sequence[str], assignments: Sequence[str], flags: Mapping[str, object], cache: str | Path | None
) -> Setup:
    """Prepare what is measured, as training does.

    Raises:
        LockstepError: As in `prepare`, or for a cache of unpadded clips.
    """
    setup = prepare(config, assignments, flags, cache=cache, run=None)
    if not setup.spec.fixed_length:
        raise LockstepError(
            str(setup.cache), found="unpadded clips: every new shape is traced and compiled, nothing is locked",
            expected="shapes.pad_to_fixed_length: true", fix=build_command(setup.cache),
        )
    say = partial(click.echo, err=True)
    quick_check(setup.cache, setup.spec)
    return setup.suited(from_a_model=setup.default_start(say) is not None, say=say)


def check_settings(setup: Setup) -> Findings:
    """Run all checks of the settings."""
    config, spec, sizes = setup.config, setup.spec, batch_sizes(setup.spec, setup.config.training)
    text = ", ".join(f"{size} x {spec.buckets[n].frames}" for n, size in sizes.items())
    batches, clips = {str(n): size for n, size in sizes.items()}, read_lengths(setup.cache / spec.index_file)
    yield from disagreements(config, spec, setup.cache)
    yield from caps(clips, config)
    yield from padding(clips, spec)
    yield Fact(name="batches", value=batches, text=f"clips x frames: {text}")


def disagreements(config: Config, spec: CacheSpec, cache: Path) -> Findings:
    """Check for feature settings that differ from those of the cache."""
    differences = feature_differences(spec.features, feature_config(config))
    text = f"{len(differences)} settings differ from the cache" if differences else "the settings of the cache"
    yield Fact(name="features", value=[key for key, _, _ in differences], text=text)
    for key, built, wanted in differences:
        yield Problem(
            name="other-cache-settings",
            what=f"{key} is {as_yaml(wanted)}, the cache was built with {as_yaml(built)}",
            cause="shapes and features are fixed when the cache is built; xtts-train refuses to start",
            setting=key,
            value=built,
            fix=f"or {build_command(cache, config='<this configuration>')}",
            gain="training starts",
        )


def caps(clips: "pa.Table", config: Config) -> Findings:
    """Count the clips that `shapes.max_text_length` and `shapes.max_mel_frames` reject, of those with known lengths."""
    tokens, frames, seconds = (clips[name].to_numpy() for name in ("token_length", "mel_length", "seconds"))
    measured, shapes = (tokens > 0) & (frames >= 0), config.shapes
    total, rejected = int(measured.sum()), dict[str, int]()
    limits = {"max_text_length": (shapes.max_text_length, tokens), "max_mel_frames": (shapes.max_mel_frames, frames)}
    for name, (limit, lengths) in limits.items():
        if limit is None:
            continue
        above = measured & (lengths > limit)
        rejected[name] = count = int(above.sum())
        if count > _TOLERATED_REJECTS * total:
            longest = int(lengths[above].max())
            yield Problem(
                name="clips-rejected",
                what=f"shapes.{name} {limit} rejects {count:,} of {total:,} clips ({count / total:.1%})",
                cause=f"the longest clip has {longest}; nothing is truncated, so a clip above the cap is rejected",
                setting=f"shapes.{name}",
                value=longest,
                fix="then run xtts-precompute build again",
                gain=f"{count:,} more clips to train on, {seconds[above].sum() / 3600:.1f} hours",
            )
    text = ", ".join(f"{name} rejects {count:,} of {total:,} clips" for name, count in rejected.items())
    yield Fact(name="caps", value=rejected, text=text or "none")


def padding(clips: "pa.Table", spec: CacheSpec) -> Findings:
    """Check the share of padding, and find the number of buckets that reduces it."""
    stats, now, used = corpus_stats(clips), spec.statistics.fill, len(spec.buckets)
    best = max(stats.fill.values())
    enough = min(n for n, fill in stats.fill.items() if fill >= _NEAR_BEST_FILL * best)
    text = f"{now:.1%} of stored frames are useful in {used} buckets; {enough} best buckets: {stats.fill[enough]:.1%}"
    yield Fact(name="padding", value={"fill": now, "buckets": used, "fills": stats.fill}, text=text)
    gain = stats.fill[enough] / now
    if enough > used and gain >= _WORTHWHILE_FILL:
        yield Problem(
            name="padding",
            what=f"{1 - now:.0%} of every step is padding",
            cause=f"{used} padded lengths for lengths that differ this much",
            setting="shapes.buckets",
            value=enough,
            fix="then run xtts-precompute build again",
            gain=f"{gain:.2f} times the useful frames a second: {now:.1%} of a step is useful now, then "
            f"{stats.fill[enough]:.1%}; {enough} steps to compile instead of {used}",
        )
