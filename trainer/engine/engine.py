"""Model, optimizer, steps and loops, built in the one order that the trainer and the doctor share."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

import tensorflow as tf

from xtts.shared.config import Config
from xtts.trainer.data.audio_mel import mel_in_step
from xtts.trainer.data.batch_sizes import typical_update
from xtts.trainer.data.training_bucket import TrainingBucket
from xtts.trainer.engine.compiler import Compiler
from xtts.trainer.engine.device_loop import DeviceLoop, DeviceValidation, Replica
from xtts.trainer.engine.device_steps import DeviceSteps
from xtts.trainer.engine.devices import Devices
from xtts.trainer.engine.dynamic_baseline import loop_kinds
from xtts.trainer.engine.train_state import TrainState
from xtts.trainer.engine.train_step import UPDATE, Steps
from xtts.trainer.engine.training_loop import TrainingLoop
from xtts.trainer.engine.validation_loop import ValidationLoop


@dataclass(frozen=True, kw_only=True)
class TracedSteps:
    """The steps of a model on one device, and the variables that they change."""

    state: TrainState
    steps: Steps
    exchange_averages: Callable[[], object]
    """Swaps the weights and their averages."""

    def begin_again(self, config: Config, buckets: Sequence[TrainingBucket]) -> None:
        """Make every variable what a new run of `config` begins with; what is compiled stays.

        config: of the same model and batches, with any seed and schedule. A `LockstepError` for another model.
        """
        self.state.restore(TrainState(config, buckets[0].spec).arrays())
        self.steps.typical.assign(self.steps.typical_counts(_typical(buckets)))
        self.steps.training = config.training
        self.steps.seed.assign(config.training.seed)
        self.steps.rate.assign(0.0)


@dataclass(frozen=True, kw_only=True)
class Engine:
    """All that trains a model on a cache."""

    state: TrainState
    steps: Steps
    loop: TrainingLoop
    validation: ValidationLoop
    exchange_averages: Callable[[], object]
    """Swaps the weights and their averages."""


def trace_steps(
    buckets: Sequence[TrainingBucket], config: Config,
    traced: Callable[[str, Callable[[], None]], None] = lambda name, call: None,
) -> TracedSteps:  # fmt: skip
    """Trace the steps of a run on one device; `traced` is called as by `Steps.trace`."""
    state = TrainState(config, buckets[0].spec)
    steps = Steps(state.model, state.optimizer, config.training, state.step, typical=_typical(buckets))
    steps.with_mel = mel_in_step(buckets[0].spec)
    steps.trace(
        {bucket.number: bucket.signature for bucket in buckets if bucket.trains},
        {bucket.number: bucket.signature for bucket in buckets if bucket.validates},
        traced=traced,
    )
    return TracedSteps(state=state, steps=steps, exchange_averages=_exchange(state))


def build_engine(
    buckets: Sequence[TrainingBucket], config: Config, *,
    restore: Callable[[TrainState], None] = lambda state: None, compiler: Compiler | None = None,
    devices: Devices | None = None, steps: TracedSteps | None = None,
) -> Engine:  # fmt: skip
    """Trace every step, restore the checkpoint, open the input pipelines.

    devices: those that share the steps, None for a single one.
    steps: those of an earlier engine of this process, for the same model and batches on one device: compiled already.
    compiler: compiles steps while the next ones are traced; without one nothing is compiled yet. XLA's cache identifies
    a step by the number of its trace. So every process builds in the same order, and `restore`, which differs between
    a new and a resumed run, comes after the traces.
    """
    if devices:
        return _build_shared(buckets, config, devices, restore, compiler)
    submit = compiler.submit if compiler else lambda name, call: None
    if steps is None:
        traced = trace_steps(buckets, config, submit)
    else:
        traced = steps
        traced.begin_again(config, buckets)
        for name, call in traced.steps.compile_calls.items():
            if name != UPDATE:
                submit(name, call)
    restore(traced.state)
    if UPDATE in traced.steps.compile_calls:  # it writes the weights, so it waits for the restore
        submit(UPDATE, traced.steps.compile_calls[UPDATE])
    training, validation = loop_kinds(buckets)
    loop = training(buckets, config.data, traced.steps, traced.state.position)
    return Engine(
        state=traced.state, steps=traced.steps, loop=loop, validation=validation(buckets, traced.steps, loop.stop),
        exchange_averages=traced.exchange_averages,
    )  # fmt: skip


def _typical(buckets: Sequence[TrainingBucket]) -> tuple[float, float]:
    return typical_update(buckets[0].spec, {bucket.number: bucket.batch_size for bucket in buckets})


def _exchange(state: TrainState) -> Callable[[], object]:
    exchange = tf.function(state.optimizer.exchange_averages, input_signature=[], jit_compile=True, autograph=False)
    exchange.get_concrete_function()
    return cast(Callable[[], object], exchange)


def _build_shared(
    buckets: Sequence[TrainingBucket], config: Config, devices: Devices, restore: Callable[[TrainState], None],
    compiler: Compiler | None,
) -> Engine:  # fmt: skip
    """The engine of several devices: in each process one whole model for each of its devices."""
    calls: dict[str, list[Callable[[], None]]] = defaultdict(list)
    replicas, exchanges = [], []
    for number, device in enumerate(devices.local):
        with tf.device(device):
            replicas.append(_replica(buckets, config, devices, number))
            exchanges.append(partial(_on_device, device, _exchange(replicas[-1].state)))
        for name, call in replicas[-1].steps.compile_calls.items():
            calls[name].append(partial(_on_device, device, call))
    for name, together in calls.items():
        if compiler and name != UPDATE:
            compiler.submit(name, partial(_call_all, together))
    restore(replicas[0].state)
    for replica in replicas[1:]:
        replica.state.restore(replicas[0].state.arrays())
    if compiler:
        compiler.submit(UPDATE, partial(_call_all, calls[UPDATE]))
    loop = DeviceLoop(buckets, config.data, replicas, devices)
    return Engine(
        state=replicas[0].state, steps=replicas[0].steps, loop=loop,
        validation=DeviceValidation(buckets, replicas, devices, loop.stop),
        exchange_averages=partial(_call_all, exchanges),
    )  # fmt: skip


def _replica(buckets: Sequence[TrainingBucket], config: Config, devices: Devices, number: int) -> Replica:
    """The model and the traced steps of one device; number: the device in this process."""
    state = TrainState(config, buckets[0].spec)
    steps = DeviceSteps(
        state.model, state.optimizer, config.training, state.step, typical=_typical(buckets),
        device=devices.first + number, devices=devices.count,
    )  # fmt: skip
    steps.with_mel = mel_in_step(buckets[0].spec)
    steps.trace(
        {b.number: replace(b, batch_size=b.batch_size // devices.count).signature for b in buckets if b.trains},
        {b.number: b.signature for b in buckets if b.validates},
    )
    return Replica(device=devices.local[number], state=state, steps=steps)


def _on_device(device: str, call: Callable[[], object]) -> None:
    with tf.device(device):
        call()


def _call_all(calls: Sequence[Callable[[], object]]) -> None:
    for call in calls:
        call()
