"""The learning rate's peak and the step where it decays; the steps at which the host takes over from the graph."""

import math
from bisect import bisect_left

from xtts.shared.config import TrainingConfig


def warmup_steps(training: TrainingConfig) -> int:
    """Steps in which the learning rate rises."""
    return round(training.warmup_fraction * training.steps)


def decay_start(training: TrainingConfig) -> int:
    """Step after which the learning rate decays."""
    return training.steps - round(training.decay_fraction * (training.steps - warmup_steps(training)))


def decaying_from(training: TrainingConfig, step: int) -> TrainingConfig:
    """The settings with as many steps as make the learning rate decay after `step`, and without epochs."""
    counts = range(step, training.steps + 1)
    index = bisect_left(counts, step, key=lambda steps: decay_start(training.model_copy(update={"steps": steps})))
    return training.model_copy(update={"steps": counts[min(index, len(counts) - 1)], "epochs": None})


def peak_learning_rate(training: TrainingConfig) -> float:
    """The learning rate after warm-up, at this batch size."""
    meant_for = training.learning_rate_batch_size or training.batch_size
    return float(training.learning_rate * (training.batch_size / meant_for) ** 0.5)


def learning_rate(training: TrainingConfig, step: int) -> float:
    """The rate of the update after `step` updates, as `optimizer.learning_rate` computes it in the graph."""
    warmup = min(1.0, (step + 1) / max(warmup_steps(training), 1))
    start = decay_start(training)
    progress = min(max((step - start) / max(training.steps - start, 1), 0.0), 1.0)
    floor = training.final_learning_rate_share
    return peak_learning_rate(training) * warmup * (floor + (1.0 - floor) * 0.5 * (1.0 + math.cos(math.pi * progress)))


def next_mark(training: TrainingConfig, step: int) -> int:
    """The last step that a graph call starting after `step` may run: the next at which the host has something to do."""
    intervals = training.validate_every, training.samples_every, training.checkpoint_every
    marks = [step + every - step % every for every in intervals if every]
    return min(marks + [mark for mark in (decay_start(training), training.steps) if mark > step])
