"""Model, optimizer, steps and loops, built in the one order that the trainer and the doctor share."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import wait
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

import tensorflow as tf

from xtts.shared.config import Config
from xtts.trainer.data.audio_mel import mel_in_step
from xtts.trainer.data.batch import is_locked
from xtts.trainer.data.batch_sizes import typical_update
from xtts.trainer.data.training_bucket import TrainingBucket
from xtts.trainer.loop.compiler import Compiler
from xtts.trainer.loop.metrics import metrics_of
from xtts.trainer.loop.objectives import objective_of
from xtts.trainer.loop.process_group import ALONE, ProcessGroup
from xtts.trainer.loop.train_state import TrainState
from xtts.trainer.loop.train_step import UPDATE, StepFunctions
from xtts.trainer.loop.training_loop import TrainingLoop
from xtts.trainer.loop.validation_loop import ValidationLoop

Submit = Callable[[str, Callable[[], object]], None]
"""Takes the name of a step and a call that compiles it."""
SCHEDULE = {
    "seed", "steps", "epochs", "patience", "learning_rate", "warmup_fraction", "decay_fraction",
    "final_learning_rate_share", "max_bad_steps", "steps_per_call", "log_every", "validate_every", "samples_every",
    "sample_sentences", "samples_heard", "checkpoint_every", "keep_checkpoints",
}  # fmt: skip
"""Settings of training that no compiled step contains."""


@dataclass(frozen=True, kw_only=True)
class Replica:
    """The model on one device: its traced steps, and the variables that they change."""

    device: str
    state: TrainState
    step_functions: StepFunctions
    exchange_averages: Callable[[], object]
    """Swaps the weights and their averages."""


@dataclass(frozen=True, kw_only=True)
class Replicas:
    """The replicas of this process."""

    replicas: Sequence[Replica]

    @property
    def state(self) -> TrainState:
        """The state of the first replica; all have the same weights."""
        return self.replicas[0].state

    @property
    def step_functions(self) -> StepFunctions:
        """The step functions of the first replica."""
        return self.replicas[0].step_functions

    def exchange_averages(self) -> None:
        """Swap the weights and their averages."""
        for replica in self.replicas:
            with tf.device(replica.device):
                replica.exchange_averages()

    def begin_again(self, config: Config, buckets: Sequence[TrainingBucket], submit: Submit) -> None:
        """Reset every variable to what a new run of `config` begins with; nothing is compiled again.

        config: for the same model and batches, with any seed and schedule. Raises `LockstepError` for another model.
        """
        for replica in self.replicas:
            replica.state.restore(TrainState(config, buckets[0].spec).arrays())
            replica.step_functions.begin_again(config.training, _typical(buckets))
        for name, call in self.step_functions.compile_calls.items():
            submit(name, call)


class StepCache:
    """Compiled steps of runs that ended in this process, for another run of the same model and cache."""

    def __init__(self, most: int) -> None:
        """most: runs whose steps, and with them their weights, stay in memory."""
        self.most, self._replicas = most, dict[str, Replicas]()

    @staticmethod
    def _key(buckets: Sequence[TrainingBucket], config: Config) -> str:
        training = config.training.model_dump(exclude=SCHEDULE)
        return repr((config.model, config.vocoder, training, buckets[0].spec.model_dump()))

    def take(self, buckets: Sequence[TrainingBucket], config: Config) -> Replicas | None:
        """Remove and return the steps of such a run; None without any."""
        return self._replicas.pop(self._key(buckets, config), None)

    def keep(self, replicas: Replicas, buckets: Sequence[TrainingBucket], config: Config) -> None:
        """Keep the steps of a run that has ended, and drop the oldest if they become too many."""
        if not all(is_locked(bucket.signature) for bucket in buckets):
            return
        self._replicas[self._key(buckets, config)] = Replicas(replicas=replicas.replicas)
        while len(self._replicas) > self.most:
            del self._replicas[next(iter(self._replicas))]


STEP_CACHE = StepCache(most=1)
"""Steps of a single device: a program that trains again on the same cache compiles nothing."""


@dataclass(frozen=True, kw_only=True)
class TrainingLoops(Replicas):
    """Everything that trains a model on a cache."""

    loop: TrainingLoop
    validation: ValidationLoop


def _ignore(name: str, call: Callable[[], object]) -> None:
    """Compile nothing."""


def trace_replicas(
    buckets: Sequence[TrainingBucket], config: Config, group: ProcessGroup = ALONE, submit: Submit = _ignore
) -> Replicas:
    """Trace the steps of all replicas of this process; each is submitted once the last replica has it."""
    calls: dict[str, list[Callable[[], object]]] = defaultdict(list)

    def traced(device: str, name: str, call: Callable[[], object]) -> None:
        calls[name].append(partial(_on_device, device, call))
        if len(calls[name]) == len(group.devices):
            submit(name, lambda: [call() for call in calls[name]])

    replicas = []
    for replica, device in enumerate(group.devices, group.first):
        with tf.device(device):
            replicas.append(_replica(buckets, config, group, replica, device, partial(traced, device)))
    return Replicas(replicas=replicas)


def _replica(
    buckets: Sequence[TrainingBucket], config: Config, group: ProcessGroup, replica: int, device: str,
    traced: Submit,
) -> Replica:  # fmt: skip
    """The model and the traced steps of one device; replica: its index among all."""
    state = TrainState(config, buckets[0].spec)
    step_functions = StepFunctions(
        objective_of(state.model, metrics_of(config)), state.optimizer, config.training, state.step,
        typical=_typical(buckets), replica=replica, replicas=group.size,
    )  # fmt: skip
    step_functions.with_mel = mel_in_step(buckets[0].spec)
    largest_first = sorted(buckets, key=lambda bucket: bucket.extent, reverse=True)
    shares = [replace(bucket, batch_size=bucket.batch_size // group.size) for bucket in largest_first]
    step_functions.trace(
        {bucket.number: bucket.signature for bucket in shares if bucket.trains},
        {bucket.number: bucket.signature for bucket in largest_first if bucket.validates},
        traced=traced,
    )
    exchange = tf.function(state.optimizer.exchange_averages, input_signature=[], jit_compile=True, autograph=False)
    exchange.get_concrete_function()
    return Replica(
        device=device, state=state, step_functions=step_functions,
        exchange_averages=cast(Callable[[], object], exchange),
    )  # fmt: skip


def build_loops(
    buckets: Sequence[TrainingBucket], config: Config, *,
    restore: Callable[[TrainState], None] = lambda state: None, compiler: Compiler | None = None,
    group: ProcessGroup = ALONE,
) -> TrainingLoops:  # fmt: skip
    """Trace every step, or take them from `STEP_CACHE`; restore the checkpoint; open the input pipelines.

    group: the replicas that share the steps.
    compiler: compiles steps while the next ones are traced; without one nothing is compiled yet. XLA's cache identifies
    a step by the number of its trace. So every process builds in the same order, and `restore`, which differs between
    a new and a resumed run, comes after the traces, and after the update's call on blank inputs, which writes weights.
    """
    submit = compiler.submit if compiler else _ignore
    if replicas := STEP_CACHE.take(buckets, config) if group.size == 1 else None:
        replicas.begin_again(config, buckets, submit)
    else:
        replicas = trace_replicas(buckets, config, group, submit)
    if compiler and UPDATE in replicas.step_functions.compile_calls:
        wait([compiler.step(UPDATE)])
    restore(replicas.state)
    for replica in replicas.replicas[1:]:
        replica.state.restore(replicas.state.arrays())
    step_functions = [replica.step_functions for replica in replicas.replicas]
    loop = TrainingLoop(buckets, step_functions, replicas.state.position, group)
    validation = ValidationLoop(buckets, step_functions, loop.stop, group)
    return TrainingLoops(replicas=replicas.replicas, loop=loop, validation=validation)


def _typical(buckets: Sequence[TrainingBucket]) -> tuple[float, float]:
    return typical_update(buckets[0].spec, {bucket.number: bucket.batch_size for bucket in buckets})


def _on_device(device: str, call: Callable[[], object]) -> None:
    with tf.device(device):
        call()
