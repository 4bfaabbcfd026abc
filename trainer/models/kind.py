"""Kinds of model: what differs between them for the trainer and the doctor, and a list of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from xtts.shared.cache.cache_spec import CacheSpec
from xtts.shared.config import Config, TrainingConfig
from xtts.shared.errors import LockstepError
from xtts.trainer.data.batch_sizes import AutomaticSteps
from xtts.trainer.models.samples import Samples
from xtts.trainer.stored.stored_model import StoredModel

if TYPE_CHECKING:
    from xtts.trainer.loop.objective import Objective

KINDS = {"acoustic": "xtts.trainer.models.acoustic.kind", "vocoder": "xtts.trainer.models.vocoder.kind"}
"""The module of each kind, in which it is `KIND`: a file or a folder beside this one.

These two import TensorFlow inside functions, so that a mistake in the settings shows at once, and JAX trains where
TensorFlow is missing; others may import it at their top, inside `tensorflow_import()`.
"""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of model: network and losses, and what else differs from a model without samples or tables of its own."""

    name: str
    """Value of `training.kind`, which a checkpoint stores."""
    objective: "Callable[[Config, CacheSpec, Path], Objective]"
    """Makes the losses of a network, and this, sized by the cache in a folder, with weights from `training.seed`."""
    model_name: Callable[[Config], str] = lambda config: config.training.kind
    """Name of the model, for the folder of a run and for messages."""
    automatic_steps: Callable[[Config], tuple[AutomaticSteps, AutomaticSteps]] = lambda _: (
        (AutomaticSteps(500, 20_000, 500_000),) * 2
    )
    """The steps of `training.epochs: auto`, from nothing and from a model (`--init-from`)."""
    check: Callable[[Config, CacheSpec, str], None] = lambda *_: None
    """Raises `LockstepError` if it cannot train with a configuration on a cache."""
    check_start: Callable[[StoredModel, CacheSpec], None] = lambda *_: None
    """Raises `LockstepError` if a run on a cache cannot begin with the weights of a stored model of this kind."""
    default_start: Callable[[Config], Path | None] = lambda _: None
    """Our model of this kind, from which a small corpus starts unless `--init-from` says otherwise."""
    samples: Callable[[Any, Path, CacheSpec, TrainingConfig], Samples] = lambda *_: Samples()
    """The samples that a run speaks every `training.samples_every` steps."""
    initial_weights: Callable[[StoredModel, Any, Path, CacheSpec], Mapping[str, np.ndarray]] = (
        lambda stored, *_: stored.averages()
    )
    """Averaged weights by path that a network takes from a stored model of this kind for a run on a cache."""


def kind_of(config: Config) -> Kind:
    """The kind of model that a configuration trains; `LockstepError` if there is none of that name."""
    if (name := config.training.kind) not in KINDS:
        raise LockstepError("training.kind", found=repr(name), expected=" or ".join(KINDS))
    kind: Kind = import_module(KINDS[name]).KIND
    return kind
