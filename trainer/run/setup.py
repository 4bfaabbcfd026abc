"""A configuration and a cache, opened and checked against each other before TensorFlow is imported."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import click

from xtts.shared.cache.cache_spec import CacheSpec, load_spec
from xtts.shared.cache.object_store import local_cache
from xtts.shared.config import Config
from xtts.shared.config_flags import DEFAULT_CACHE, resolve
from xtts.shared.errors import LockstepError, build_command
from xtts.shared.feature_settings import feature_config, feature_differences, follow_cache
from xtts.shared.system.folder_lock import ReadLock
from xtts.trainer.data.batch_sizes import batch_sizes, for_corpus
from xtts.trainer.models.kind import Kind, kind_of
from xtts.trainer.stored.checkpoint import check_weights, identity_of
from xtts.trainer.stored.run_folder import RunFolder
from xtts.trainer.stored.stored_model import open_model

_LARGE_CORPUS_HOURS = 3
"""With this many hours of recordings or more, a voice is trained from scratch by default."""


@dataclass(frozen=True, kw_only=True)
class Setup:
    """A configuration and the cache that it trains on."""

    config: Config
    cache: Path
    """Folder of the cache; for a URL that of its copy."""
    named_cache: str
    """The path or URL that was given."""
    spec: CacheSpec
    lock: ReadLock
    """Keeps the files of the cache, even if another build replaces it."""

    @property
    def kind(self) -> Kind:
        """The kind of model."""
        return kind_of(self.config)

    def suited(self, *, from_a_model: bool, say: Callable[[str], object] = click.echo) -> Self:
        """Return it with the batch and the steps that suit the corpus; report a batch that is smaller than requested.

        from_a_model: whether `--init-from` began the run.

        Raises:
            LockstepError: No batch can be made.
        """
        asked, spec = self.config, self.spec
        config = for_corpus(asked, spec, self.kind.automatic_steps(asked)[from_a_model])
        batch_sizes(spec, config.training)
        if config.training.batch_size < asked.training.batch_size:
            share, few = asked.training.max_batch_share, "the cache has no more training clips"
            reason = f"a step takes about {share:.1%} of an epoch (training.max_batch_share)" if share < 1.0 else few
            say(f"{config.training.batch_size} clips a step instead of {asked.training.batch_size}: {reason}")
        return replace(self, config=config)

    def default_start(self, say: Callable[[str], object] = click.echo) -> Path | None:
        """Return our model, if the corpus is small and its weights fit; report which start was chosen and why."""
        ours, hours = self.kind.default_start(self.config), self.spec.statistics.seconds / 3600
        if ours is None:
            return None
        if hours >= _LARGE_CORPUS_HOURS:
            say(f"training from scratch: {hours:.1f} hours of recordings (from our voice: --init-from {ours})")
            return None
        try:
            check_weights(ours, (stored := open_model(ours)).settings(), identity_of(self.config, self.spec))
            self.kind.check_start(stored, self.spec)
        except LockstepError as reason:
            say(f"training from scratch: {reason}")
            return None
        say(f"starting from our voice: {hours:.1f} hours of recordings, fewer than {_LARGE_CORPUS_HOURS}")
        return ours


def prepare(
    config: Sequence[str], assignments: Sequence[str], flags: Mapping[str, object], *, cache: str | Path | None,
    run: RunFolder | None,
) -> Setup:
    """Resolve the configuration, open the cache and check that the kind of model can train on it.

    run: its settings and its cache are the defaults.

    Raises:
        LockstepError: The cache cannot be read, or is not what the model trains on.
    """
    if run and not config and run.config_file.is_file():
        config = (str(run.config_file),)
    resolved = resolve(config, assignments, flags)
    given = str(cache or (run.cache_now() if run else None) or DEFAULT_CACHE)
    folder = local_cache(given)
    lock, spec = ReadLock(folder), load_spec(folder)  # no build removes what is read next
    resolved = follow_cache(resolved, spec.features)
    kind_of(resolved).check(resolved, spec, given)
    for key, value, wanted in feature_differences(spec.features, feature_config(resolved)):
        built = json.dumps(value)
        fix = f"{build_command(given, config='<this configuration>')}, or train with --set {key}={built}"
        raise LockstepError(given, found=f"built with {key} = {built}", expected=json.dumps(wanted), fix=fix)
    return Setup(config=resolved, cache=folder, named_cache=given, spec=spec, lock=lock)
