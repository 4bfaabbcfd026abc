"""Model, optimizer, steps and loops, built in the one order that the trainer and the doctor share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import tensorflow as tf

from xtts.shared.config import Config
from xtts.trainer.data.audio_mel import mel_in_step
from xtts.trainer.data.training_bucket import TrainingBucket
from xtts.trainer.engine.compiler import Compiler
from xtts.trainer.engine.dynamic_baseline import loop_kinds
from xtts.trainer.engine.train_state import TrainState
from xtts.trainer.engine.train_step import UPDATE, Steps
from xtts.trainer.engine.training_loop import TrainingLoop
from xtts.trainer.engine.validation_loop import ValidationLoop


@dataclass(frozen=True, kw_only=True)
class Engine:
    """All that trains a model on a cache."""

    state: TrainState
    steps: Steps
    loop: TrainingLoop
    validation: ValidationLoop
    exchange_averages: tf.types.experimental.PolymorphicFunction
    """Swaps the weights and their averages."""


def build_engine(
    buckets: Sequence[TrainingBucket], config: Config, *,
    restore: Callable[[TrainState], None] = lambda state: None, compiler: Compiler | None = None,
) -> Engine:  # fmt: skip
    """Trace every step, restore the checkpoint, open the input pipelines.

    compiler: compiles steps while the next ones are traced; without one nothing is compiled yet. XLA's cache identifies
    a step by the number of its trace. So every process builds in the same order, and `restore`, which differs between
    a new and a resumed run, comes after the traces.
    """
    state = TrainState(config, buckets[0].spec)
    steps = Steps(state.model, state.optimizer, config.training, state.step)
    steps.with_mel = mel_in_step(buckets[0].spec)
    steps.trace(
        {bucket.number: bucket.signature for bucket in buckets if bucket.trains},
        {bucket.number: bucket.signature for bucket in buckets if bucket.validates},
        traced=compiler.submit if compiler else lambda name, call: None,
    )
    exchange = tf.function(state.optimizer.exchange_averages, input_signature=[], jit_compile=True, autograph=False)
    exchange.get_concrete_function()
    restore(state)
    if compiler and UPDATE in steps.compile_calls:  # it writes the weights, so it waits for the restore
        compiler.submit(UPDATE, steps.compile_calls[UPDATE])
    training, validation = loop_kinds(buckets)
    loop = training(buckets, config.data, steps, state.position)
    return Engine(
        state=state, steps=steps, loop=loop, validation=validation(buckets, steps, loop.stop),
        exchange_averages=exchange,
    )  # fmt: skip
