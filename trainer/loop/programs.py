"""Locked steps as portable programs that any PJRT runtime compiles, with order and reader where they were traced."""

import re
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import tensorflow as tf
from tensorflow.compiler.mlir.stablehlo import stablehlo

from xtts.shared.cache.cache_spec import Split
from xtts.trainer.data.dataset import training_batches, validation_batches
from xtts.trainer.data.stored_batches import Input
from xtts.trainer.data.training_bucket import TrainingBucket, bucket_schedule
from xtts.trainer.loop.chunk import StoredBatch
from xtts.trainer.loop.jax_runtime import Program
from xtts.trainer.loop.program_loop import Place

_STABLEHLO_VERSION = "0.9.0"
"""Old enough for runtimes of 2023."""
_LOCATION = re.compile(r' loc\((?:[^()"]|"[^"]*"|\([^()]*\))*\)')
_ALIAS = re.compile(r"parameter_number = (\d+) : i64\}, output_index = array<i64(?:: (\d+))?>")


def export_program(function: tf.types.experimental.PolymorphicFunction, names: Mapping[int, str]) -> Program:
    """Export a `tf.function` with an input signature that has been traced; names: of variables, by id of handle."""
    signature, concrete = function.input_signature, function.get_concrete_function()
    text = function.experimental_get_compiler_ir(*signature)(stage="stablehlo")
    state = [names[id(captured)] for captured in concrete.captured_inputs]
    header = text[text.index("module @") :].partition("\n")[0]
    aliases = {int(parameter): int(output or 0) for parameter, output in _ALIAS.findall(header)}
    return Program(
        artifact=stablehlo.serialize_portable_artifact_str(_portable(text, aliases), _STABLEHLO_VERSION),
        inputs=[Input(spec.name or "", spec.dtype.name, tuple(spec.shape)) for spec in signature], state=state,
        writes={output: state[parameter - len(signature)] for parameter, output in aliases.items()},
    )


def export_programs(
    functions: Mapping[str, tf.types.experimental.PolymorphicFunction], known: Mapping[str, tf.Variable]
) -> tuple[dict[str, Program], dict[str, tf.Variable]]:
    """Export steps by name: (programs, the variables that they read, by name).

    known: names of variables; others, which no step writes, are named by their number.
    """
    names, variables = {id(variable.handle): name for name, variable in known.items()}, dict[str, tf.Variable]()
    for function in functions.values():
        for variable in function.get_concrete_function().variables:
            name = names.setdefault(id(variable.handle), f"constant/{len(names)}")
            variables[name] = variable
    return {name: export_program(function, names) for name, function in functions.items()}, variables


def _portable(text: str, aliases: dict[int, int]) -> str:
    """Return the program without what is XLA's own, and without the paths of this machine.

    aliases: parameter to the result that takes its memory, as JAX writes it.
    """
    text = _LOCATION.sub("", re.sub(r"(?m)^#loc.*\n", "", text))
    text = re.sub(r"module @\S+ attributes \{.*\} \{\n", "module @step {\n", text, count=1)
    text = re.sub(r" \{mhlo\.frontend_attributes = \{[^}]*\}\}", "", text)
    text = text.replace("mhlo.copy", "stablehlo.optimization_barrier")
    main = re.search(r"func\.func @main\(.*", text)
    assert main is not None
    signature = main[0]
    for parameter, output in aliases.items():
        signature = re.sub(
            rf"(%arg{parameter}: tensor<[^>]*>)", rf"\1 {{tf.aliasing_output = {output} : i32}}", signature, count=1
        )
    return text.replace(main[0], signature, 1)


class TracedOrder:
    """The order in which the loop in TensorFlow's graph draws its batches; see `Order`."""

    def __init__(self, buckets: Sequence[TrainingBucket], seed: int) -> None:
        self._trained = [bucket for bucket in buckets if bucket.trains]
        self.buckets = [bucket.number for bucket in self._trained]
        kinds = [tf.TensorSpec([], tf.int64), tf.TensorSpec([len(self.buckets)], tf.int64)]
        schedule = bucket_schedule(self._trained, seed)
        self._draw = tf.function(schedule.draw, input_signature=kinds, autograph=False)

    def draw(self, place: Place) -> tuple[int, Place]:
        """See `Order`."""
        drawn = self._draw(tf.constant(place.epoch, tf.int64), tf.constant(place.consumed, tf.int64))
        epoch, index = (int(tensor.numpy()) for tensor in drawn)
        taken = np.eye(len(self.buckets), dtype=np.int64)[index] * self._trained[index].batch_size
        return index, Place(place.batches + 1, epoch, place.consumed + taken)

    def batch(self, index: int, offset: int) -> StoredBatch:
        """See `Order`."""
        return self._trained[index].batch_after(offset)


class TracedReader:
    """TensorFlow's input pipelines, which read ahead in the order of the batches; see `Reader`."""

    def __init__(self, buckets: Sequence[TrainingBucket], consumed: Sequence[int]) -> None:
        """consumed: clips of each bucket that holds training clips consumed so far."""
        trained = zip([bucket for bucket in buckets if bucket.trains], consumed, strict=True)
        self._batches = {(bucket.number, "train"): iter(training_batches(bucket, done)) for bucket, done in trained}
        for bucket in (bucket for bucket in buckets if bucket.validates):
            self._batches[bucket.number, "validation"] = iter(validation_batches(bucket).repeat())

    def read(
        self, bucket: int, split: Split, clips: Iterable[tuple[int, int]], fields: Sequence[Input]
    ) -> list[np.ndarray]:
        """See `Reader`."""
        return [tensor.numpy() for tensor in next(self._batches[bucket, split])]
