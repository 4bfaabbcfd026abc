"""Locked steps as portable programs: StableHLO that any PJRT runtime compiles, and what each reads and writes."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import tensorflow as tf
from tensorflow.compiler.mlir.stablehlo import stablehlo

_STABLEHLO_VERSION = "0.9.0"
"""Old enough for runtimes of 2023."""
_LOCATION = re.compile(r' loc\((?:[^()"]|"[^"]*"|\([^()]*\))*\)')
_ALIAS = re.compile(r"parameter_number = (\d+) : i64\}, output_index = array<i64(?:: (\d+))?>")


@dataclass(frozen=True, kw_only=True)
class Program:
    """A step for one signature."""

    artifact: bytes
    """StableHLO, as a portable artifact."""
    inputs: Sequence[tf.TensorSpec]
    """Its arguments, before the state."""
    state: Sequence[tf.Variable]
    """The variables that it reads, in the order of its parameters after `inputs`."""
    writes: dict[int, tf.Variable]
    """Position among its results to the variable whose new value that is."""


def export_program(function: tf.types.experimental.PolymorphicFunction) -> Program:
    """Export a `tf.function` with an input signature that has been traced."""
    inputs, concrete = function.input_signature, function.get_concrete_function()
    text = function.experimental_get_compiler_ir(*inputs)(stage="stablehlo")
    variables = {id(variable.handle): variable for variable in concrete.variables}
    state = [variables[id(captured)] for captured in concrete.captured_inputs]
    header = text[text.index("module @") :].partition("\n")[0]
    aliases = {int(parameter): int(output or 0) for parameter, output in _ALIAS.findall(header)}
    return Program(
        artifact=stablehlo.serialize_portable_artifact_str(_portable(text, aliases), _STABLEHLO_VERSION), inputs=inputs,
        state=state, writes={output: state[parameter - len(inputs)] for parameter, output in aliases.items()},
    )  # fmt: skip


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
        )  # fmt: skip
    return text.replace(main[0], signature, 1)
