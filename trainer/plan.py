"""What one run is to do."""

from dataclasses import dataclass
from pathlib import Path

from xtts.shared.cache_spec import CacheSpec
from xtts.shared.config import Config, TrainingConfig
from xtts.trainer.run_folder import RunFolder


def host_marks(training: TrainingConfig) -> dict[str, int]:
    """Steps between what happens on the host, by setting: a call of the graph goes no further than the next of them."""
    marks = {
        "training.validate_every": training.validate_every,
        "training.samples_every": training.samples_every,
        "training.checkpoint_every": training.checkpoint_every,
    }
    return {name: every for name, every in marks.items() if every}


def next_mark(training: TrainingConfig, step: int) -> int:
    """The step after `step` up to which a call of the graph may go."""
    marks = [step + every - step % every for every in host_marks(training).values()]
    return min(marks + [mark for mark in (training.decay_start, training.steps) if mark > step])


@dataclass(frozen=True, kw_only=True)
class RunPlan:
    """What the command line asked for, checked before TensorFlow was imported."""

    config: Config
    cache: Path
    spec: CacheSpec
    sizes: dict[int, int]
    """B by bucket number."""
    folder: RunFolder
    resume: Path | None
    """Checkpoint to continue."""
    init_from: Path | None
    """Checkpoint whose averaged weights to start from."""
