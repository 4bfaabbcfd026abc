"""Contents of a graph: ops that call Python, and shapes unknown at compile time."""

from collections.abc import Iterable, Iterator

import tensorflow as tf

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
