"""Model, optimizer, steps and loops, built in the one order that the trainer and the doctor share."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import wait
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import tensorflow as tf

from xtts.shared.cache.cache_spec import CacheSpec
from xtts.shared.config import Config
from xtts.trainer.data.batch_sizes import typical_update
from xtts.trainer.data.training_bucket import TrainingBucket
from xtts.trainer.loop.compiler import Compiler
from xtts.trainer.loop.jax_runtime import JaxRuntime
from xtts.trainer.loop.objective import Objective
from xtts.trainer.loop.process_group import ALONE, ProcessGroup
from xtts.trainer.loop.program_loop import Place, ProgramLoop, ProgramValidation
from xtts.trainer.loop.step_names import EXCHANGE, UPDATE, training_step, validation_step
from xtts.trainer.loop.train_state import TrainState
from xtts.trainer.loop.train_step import StepFunctions
from xtts.trainer.loop.training_loop import TrainingLoop
from xtts.trainer.loop.validation_loop import ValidationLoop, split_batches

Submit = Callable[[str, Callable[[], object]], None]
"""Takes the name of a step and a call that compiles it."""
MakeObjective = Callable[[Config, CacheSpec, Path], Objective]
"""Makes a network with its initial weights, and its losses: `Kind.objective`."""


@dataclass(frozen=True, kw_only=True)
class Replica:
    """The model on one device: its traced steps, and the variables that they change."""

    device: str
    state: TrainState
    step_functions: StepFunctions
    exchange_averages: Callable[[], object]
    """Swaps the weights and their averages; a `tf.function`."""

    @property
    def functions(self) -> dict[str, Any]:
        """Steps, `tf.function`s, by name."""
        steps = self.step_functions
        functions: dict[str, Any] = {UPDATE: steps.update, EXCHANGE: self.exchange_averages}
        functions |= {training_step(bucket): step for bucket, step in steps.gradient_steps.items()}
        return functions | {validation_step(bucket): step for bucket, step in steps.validation_steps.items()}


@dataclass(frozen=True, kw_only=True)
class TrainingLoops:
    """Everything that trains a model on a cache."""

    replicas: Sequence[Replica]
    """Replicas of this process; all have the same weights."""
    buckets: Sequence[TrainingBucket]
    """The buckets that hold training clips."""
    loop: TrainingLoop | ProgramLoop
    validation: ValidationLoop | ProgramValidation
    variables: Mapping[str, tf.Variable] = field(default_factory=dict)
    """Variables that the programs read, by name, if TensorFlow does not run the steps."""

    @property
    def state(self) -> TrainState:
        """The state of the first replica."""
        return self.replicas[0].state

    @property
    def step_functions(self) -> StepFunctions:
        """The step functions of the first replica."""
        return self.replicas[0].step_functions

    def pull(self) -> None:
        """Give the variables the values of the state that programs change, after all queued calls."""
        if isinstance(self.loop, ProgramLoop):
            for name, array in self.loop.runtime.state().items():
                self.variables[name].assign(array)
            self.state.position.epoch.assign(self.loop.place.epoch)
            self.state.position.consumed.assign(self.loop.place.consumed)

    def exchange_averages(self) -> None:
        """Swap the weights and their averages."""
        if isinstance(self.loop, ProgramLoop):
            self.loop.runtime.call(EXCHANGE)
            return
        for replica in self.replicas:
            with tf.device(replica.device):
                replica.exchange_averages()


def _ignore(name: str, call: Callable[[], object]) -> None:
    """Compile nothing."""


def trace_replicas(
    buckets: Sequence[TrainingBucket], objective_of: MakeObjective, config: Config, group: ProcessGroup = ALONE,
    submit: Submit = _ignore,
) -> list[Replica]:
    """Trace the steps of all replicas of this process; each is submitted once the last replica has it."""
    calls: dict[str, list[Callable[[], object]]] = defaultdict(list)

    def traced(device: str, name: str, call: Callable[[], object]) -> None:
        def on_device() -> None:
            with tf.device(device):
                call()

        calls[name].append(on_device)
        if len(calls[name]) == len(group.devices):
            submit(name, lambda: [call() for call in calls[name]])

    replicas = []
    for replica, device in enumerate(group.devices, group.first):
        with tf.device(device):
            replicas.append(_replica(buckets, objective_of, config, group, replica, device, partial(traced, device)))
    return replicas


def _replica(
    buckets: Sequence[TrainingBucket], objective_of: MakeObjective, config: Config, group: ProcessGroup, replica: int,
    device: str, traced: Submit,
) -> Replica:
    """The model and the traced steps of one device; replica: its index among all."""
    spec = buckets[0].spec
    objective = objective_of(config, spec, buckets[0].cache)
    state = TrainState(objective, config.training, spec)
    step_functions = StepFunctions(
        objective, state.optimizer, config.training, state.step,
        typical=typical_update(spec, {bucket.number: bucket.batch_size for bucket in buckets}), replica=replica,
        replicas=group.size,
    )
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
    )


def build_loops(
    buckets: Sequence[TrainingBucket], objective_of: MakeObjective, config: Config, *,
    restore: Callable[[TrainState], None] = lambda state: None, compiler: Compiler | None = None,
    group: ProcessGroup = ALONE,
) -> TrainingLoops:
    """Trace every step, restore the checkpoint, open the input pipelines.

    group: the replicas that share the steps.
    compiler: compiles steps while the next ones are traced; without one nothing is compiled yet. XLA's cache identifies
    a step by the number of its trace. So every process builds in the same order, and `restore`, which differs between
    a new and a resumed run, comes after the traces, and after the update's call on blank inputs, which writes weights.
    """
    if config.training.runtime == "jax":
        return _jax_loops(buckets, objective_of, config, restore, compiler)
    replicas = trace_replicas(buckets, objective_of, config, group, compiler.submit if compiler else _ignore)
    state, step_functions = replicas[0].state, [replica.step_functions for replica in replicas]
    if compiler and UPDATE in step_functions[0].compile_calls:
        wait([compiler.step(UPDATE)])
    restore(state)
    for replica in replicas[1:]:
        replica.state.restore(state.arrays())
    loop = TrainingLoop(buckets, step_functions, state.position, group)
    validation = ValidationLoop(buckets, step_functions, loop.stopping, group)
    return TrainingLoops(replicas=replicas, buckets=loop.buckets, loop=loop, validation=validation)


def _jax_loops(
    buckets: Sequence[TrainingBucket], objective_of: MakeObjective, config: Config,
    restore: Callable[[TrainState], None], compiler: Compiler | None,
) -> TrainingLoops:
    """Trace every step on the CPU, restore the checkpoint, and hand programs and state to JAX."""
    from xtts.trainer.loop.programs import TracedOrder, TracedReader, export_programs

    (replica,) = trace_replicas(buckets, objective_of, config)
    steps, state = replica.step_functions, replica.state
    restore(state)
    programs, variables = export_programs(replica.functions, state.variables)
    runtime = JaxRuntime(programs, {name: variable.numpy() for name, variable in variables.items()})
    runtime.compile(EXCHANGE)
    for name in steps.compile_calls:
        steps.compile_calls[name] = partial(runtime.compile, name)
        if compiler:
            compiler.submit(name, steps.compile_calls[name])
    consumed, trained = state.position.consumed.numpy(), [bucket for bucket in buckets if bucket.trains]
    order, reader = TracedOrder(trained, config.training.seed), TracedReader(buckets, consumed)
    place = Place(int(state.step.numpy()), int(state.position.epoch.numpy()), consumed)
    loop = ProgramLoop(runtime, order, reader, place, config.training, steps.metrics)
    validation = ProgramValidation(loop, split_batches(buckets), reader, steps.metrics)
    return TrainingLoops(replicas=[replica], buckets=trained, loop=loop, validation=validation, variables=variables)
