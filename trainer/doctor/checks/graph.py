"""Checks graphs for Python ops and for shapes unknown at compile time."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import tensorflow as tf

from xtts.trainer.doctor.finding import Fact, Finding, Result

PYTHON_OPS = ("PyFunc", "EagerPyFunc", "PyFuncStateless")
"""Ops that call the host's Python: from py_function, numpy_function and from_generator."""
DYNAMIC_OPS = (
    "Where", "Unique", "UniqueV2", "UniqueWithCounts", "UniqueWithCountsV2", "NonMaxSuppressionV3",
    "NonMaxSuppressionV4", "NonMaxSuppressionV5", "DynamicPartition", "RaggedTensorToTensor",
)  # fmt: skip
"""Ops whose output's shape depends on values."""
_SHAPE_OPS = ("Shape", "ShapeN", "Size", "Rank")


def walk(graph: tf.Graph) -> Iterator[tf.Operation]:
    """Every op of a graph and of the functions it calls, once each."""
    seen, waiting = {id(graph)}, [graph]
    while waiting:
        current = waiting.pop()
        yield from current.get_operations()
        for function in current._functions.values():
            inner = getattr(function, "graph", None)
            if inner is not None and id(inner) not in seen:
                seen.add(id(inner))
                waiting.append(inner)


def dataset_ops(dataset: tf.data.Dataset) -> Iterator[tuple[str, str]]:
    """(kind, name) of every op of a data set's graph, including its map functions."""
    serialized = tf.raw_ops.DatasetToGraphV2(
        input_dataset=dataset._variant_tensor, external_state_policy=0, strip_device_assignment=False
    )
    graph = tf.compat.v1.GraphDef.FromString(serialized.numpy())
    yield from ((node.op, node.name) for node in graph.node)
    for function in graph.library.function:
        yield from ((node.op, f"{function.signature.name}/{node.name}") for node in function.node_def)


def python_ops(ops: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The `ops`, as (kind, name), that run Python."""
    return [(kind, name) for kind, name in ops if kind in PYTHON_OPS]


def unknown_shapes(graph: tf.Graph) -> list[tuple[str, str]]:
    """(what, where) of a step's ops whose shapes are not compile-time constants, causes first."""
    found = []
    for op in walk(graph):
        # A while loop's condition lists unused captures of the body without their shapes.
        unknown = [
            output
            for output in (*op.outputs, *(op.inputs if op.type in _SHAPE_OPS else ()))
            if output.dtype not in (tf.resource, tf.variant)
            and not output.shape.is_fully_defined()
            and "redundant_placeholder" not in output.name
        ]
        if op.type in _SHAPE_OPS and unknown:
            found.append((f"tf.{op.type.lower()} of {unknown[-1].op.name} {unknown[-1].shape}", op.name))
        elif op.type in DYNAMIC_OPS or unknown:
            shapes = ", ".join(str(output.shape) for output in unknown)
            found.append((f"{op.type} {shapes}".strip(), op.name))
    # tf.shape of an unknown dimension explains more than the ops that use it.
    return sorted(found, key=lambda item: not item[0].startswith("tf."))


def data_set_check(datasets: Mapping[str, tf.data.Dataset]) -> Result:
    """Check that no Python runs in the pipelines, given by name."""
    findings, counted = [], 0
    for name, dataset in datasets.items():
        ops = list(dataset_ops(dataset))
        counted += len(ops)
        findings += [_python_finding(name, *op) for op in python_ops(ops)[:1]]
    return [Fact(name="pipeline", value=counted, text=f"{counted:,} ops in {len(datasets)} pipelines walked")], findings


def function_check(functions: Mapping[str, tf.Graph], *, static: bool = True) -> Result:
    """Check that no Python runs in these graphs, given by name, and with `static` that all shapes are known."""
    findings, counted = [], 0
    for name, graph in functions.items():
        ops = [(op.type, op.name) for op in walk(graph)]
        counted += len(ops)
        findings += [_python_finding(name, *op) for op in python_ops(ops)[:1]]
        unknown = unknown_shapes(graph) if static else []
        findings += [_shape_finding(name, *first, len(unknown)) for first in unknown[:1]]
    kind = "steps" if static else "loop"
    return [Fact(name=kind, value=counted, text=f"{counted:,} ops in {len(functions)} graphs walked")], findings


def _python_finding(where: str, kind: str, name: str) -> Finding:
    return Finding(
        name="python-in-the-graph",
        section="graph",
        what=f"{where}: {kind} {name} calls Python for every batch",
        cause="py_function, numpy_function and from_generator hold Python's lock, and XLA cannot compile them",
        fix="write it with TensorFlow ops, or do it once in stage 1",
        gain="loading no longer waits for Python; threads run side by side",
    )


def _shape_finding(where: str, what: str, name: str, count: int) -> Finding:
    more = f", and {count - 1} more ops" if count > 1 else ""
    return Finding(
        name="unknown-shape",
        section="graph",
        what=f"{where}: {what} at {name}{more}",
        cause="a dimension that is None in the signature, or depends on values: each new size is compiled again",
        fix="give input_signature fixed sizes, and take x.shape[i], a Python number, instead of tf.shape(x)[i]",
        gain="one compilation instead of one for each size",
    )


def graph_of(target: Any) -> tf.Graph:  # noqa: ANN401 - a tf.function or what it traced
    """The graph of a `tf.function` with one signature, or of a concrete function."""
    return (target.get_concrete_function() if hasattr(target, "get_concrete_function") else target).graph
