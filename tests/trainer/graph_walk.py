"""Contents of a graph: ops that call Python, and shapes unknown at compile time."""

from collections.abc import Iterator

import tensorflow as tf

PYTHON_OPS = ("PyFunc", "EagerPyFunc", "PyFuncStateless")
"""Ops that call the host's Python: from py_function, numpy_function and from_generator."""
DYNAMIC_OPS = (
    "Where", "Unique", "UniqueV2", "UniqueWithCounts", "UniqueWithCountsV2", "NonMaxSuppressionV3",
    "NonMaxSuppressionV4", "NonMaxSuppressionV5", "DynamicPartition", "RaggedTensorToTensor",
)
"""Ops whose output's shape depends on values."""


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


def dataset_ops(dataset: tf.data.Dataset) -> set[str]:
    """Kinds of the ops of a data set's graph, including its map functions."""
    serialized = tf.raw_ops.DatasetToGraphV2(
        input_dataset=dataset._variant_tensor, external_state_policy=0, strip_device_assignment=False
    )
    graph = tf.compat.v1.GraphDef.FromString(serialized.numpy())
    functions = (function.node_def for function in graph.library.function)
    return {node.op for nodes in (graph.node, *functions) for node in nodes}


def unknown_shapes(graph: tf.Graph) -> list[tuple[str, str]]:
    """(kind, name) of a step's ops whose shapes are not compile-time constants."""
    return [
        (op.type, op.name)
        for op in walk(graph)
        # A while loop's condition lists unused captures of the body without their shapes.
        if op.type in DYNAMIC_OPS
        or any(
            output.dtype not in (tf.resource, tf.variant)
            and not output.shape.is_fully_defined()
            and "redundant_placeholder" not in output.name
            for output in op.outputs
        )
    ]
