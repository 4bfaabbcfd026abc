"""At which steps something changes: the decay of the learning rate, and what happens on the host between calls."""

from xtts.shared.config import TrainingConfig


def decay_start(training: TrainingConfig) -> int:
    """Step after which the learning rate decays."""
    return training.steps - round(training.decay_fraction * max(training.steps - training.warmup_steps, 0))


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
    return min(marks + [mark for mark in (decay_start(training), training.steps) if mark > step])
