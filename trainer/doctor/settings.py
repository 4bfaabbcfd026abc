"""The cache and the configuration, loaded before TensorFlow is imported and checked against each other."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import click

from xtts.shared.cache.cache_spec import CacheSpec
from xtts.shared.cache.quick_check import quick_check
from xtts.shared.cache.stats import CorpusStats, corpus_stats
from xtts.shared.errors import LockstepError, build_command
from xtts.trainer.data.batch_sizes import batch_sizes
from xtts.trainer.doctor.results import Fact, Findings, Problem
from xtts.trainer.run.setup import Setup, prepare

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
    """Check the batches and the padding."""
    spec, sizes = setup.spec, batch_sizes(setup.spec, setup.config.training)
    text = ", ".join(f"{size} x {spec.buckets[n].frames}" for n, size in sizes.items())
    yield Fact(name="batches", value={str(n): size for n, size in sizes.items()}, text=f"clips x frames: {text}")
    yield from padding(corpus_stats(setup.cache / spec.index_file), spec)


def padding(stats: CorpusStats, spec: CacheSpec) -> Findings:
    """Check the share of padding, and find the number of buckets that reduces it."""
    now, used = spec.statistics.fill, len(spec.buckets)
    best = max(stats.fill.values())
    enough = min(n for n, fill in stats.fill.items() if fill >= _NEAR_BEST_FILL * best)
    text = f"{now:.1%} of stored frames are useful in {used} buckets; {enough} best buckets: {stats.fill[enough]:.1%}"
    yield Fact(name="padding", value={"fill": now, "buckets": used, "fills": stats.fill}, text=text)
    gain = stats.fill[enough] / now
    if enough > used and gain >= _WORTHWHILE_FILL:
        yield Problem(
            name="padding", what=f"{1 - now:.0%} of every step is padding",
            cause=f"{used} padded lengths for lengths that differ this much",
            remedy=f"set shapes.buckets to {enough}, then run xtts-precompute build again",
            gain=f"{gain:.2f} times the useful frames a second: {now:.1%} of a step is useful now, then "
            f"{stats.fill[enough]:.1%}; {enough} steps to compile instead of {used}",
        )
