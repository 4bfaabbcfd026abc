"""Interface of a kind of model, for the trainer, the doctor and the end of a run."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from xtts.shared.cache.cache_spec import CacheSpec
from xtts.shared.config import Config, TrainingConfig
from xtts.trainer.data.batch_sizes import AutomaticSteps
from xtts.trainer.stored.stored_model import StoredModel

if TYPE_CHECKING:
    from rich.console import Console

    from xtts.trainer.export.export_formats import ExportRequest
    from xtts.trainer.loop.objectives import Network, Objective
    from xtts.trainer.reporting.samples import Samples


@dataclass(frozen=True, kw_only=True)
class InitialWeights:
    """The weights with which a run begins that `--init-from` started."""

    averages: Mapping[str, np.ndarray]
    """Averaged weights by weight path."""
    reused: str = ""
    """Rows reused of tables whose rows have different names, in words; empty if all names are the same."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of model. Its module imports no TensorFlow; its functions do where they need it."""

    name: str
    """Value of `training.kind`, which a checkpoint stores."""
    product: str
    """Product of a run, for messages."""
    model_name: Callable[[Config], str]
    """Name of the model, for the folder of a run and for messages."""
    automatic_steps: Callable[[Config], tuple[AutomaticSteps, AutomaticSteps]]
    """The steps of `training.epochs: auto`, from nothing and from a model (`--init-from`)."""
    check: Callable[[Config, CacheSpec, str], None]
    """Raises `LockstepError` if it cannot train with a configuration on a cache."""
    check_start: Callable[[StoredModel, CacheSpec], None]
    """Raises `LockstepError` if a run on a cache cannot begin with the weights of a stored model of this kind."""
    default_start: Callable[[Config], Path | None]
    """Our model of this kind, from which a small corpus starts unless `--init-from` says otherwise."""
    network: "Callable[[Config, CacheSpec, Path], Network]"
    """Makes the network, sized by the cache in a folder, with initial weights from `training.seed`."""
    objective: "Callable[[Any], Objective]"
    """The losses of a network."""
    samples: "Callable[[Any, Path, CacheSpec, TrainingConfig], Samples]"
    """The samples that a run speaks; empty if `training.samples_every` is null."""
    initial_weights: Callable[[StoredModel, Any, Path, CacheSpec], InitialWeights]
    """Weights that a network takes from a stored model of this kind for a run on a cache."""
    final_formats: Sequence[str]
    """Formats of `xtts-synth export` in which a run leaves its product in RUN/voice/."""
    export: "Callable[[StoredModel, Path, ExportRequest], list[str]]"
    """Writes the files of an export into a folder; returns a description of each format."""
    measure: "Callable[[StoredModel, Path, Path | None, Console], None]"
    """Measures the product of a run, exported into a folder, for its card and its listening page; the third argument is
    the folder of the corpus, if known."""
    usage: Callable[[Path, Path], str]
    """The line that says how to use a run's product, from the run's folder and the product's."""
