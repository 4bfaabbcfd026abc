"""The graph of a Piper voice: phonemes to tokens, acoustic model and vocoder, joined."""

from collections.abc import Mapping

import numpy as np
import onnx
import tensorflow as tf
from onnx import helper, numpy_helper

from xtts.shared.text.tokenizer import BLANK, PAD, Tokenizer
from xtts.trainer.export.onnx_graph import convert
from xtts.trainer.speech.synthesizer import MEL

_INPUTS = (
    tf.TensorSpec([1, None], tf.int64, "input"),
    tf.TensorSpec([1], tf.int64, "input_lengths"),
    tf.TensorSpec([3], tf.float32, "scales"),
)
"""Phoneme ids, how many to speak, and (noise_scale, length_scale, noise_w); noise_w has no effect."""
_SPEAKER = "sid"


def token_graph(tokenizer: Tokenizer, rules: Mapping[tuple[int, int], tuple[int, int]]) -> onnx.ModelProto:
    """Convert the step from Piper's inputs to those of the acoustic model.

    It drops pads, replaces pairs of ids by `rules`, drops ids from `tokenizer.size` on, and puts blanks around the
    tokens if the model needs them.
    """
    pad, blank = (np.int64(tokenizer.symbols.index(symbol)) for symbol in (PAD, BLANK))
    old, new = (np.array([*pairs], np.int64).reshape(-1, 2) for pairs in (rules, rules.values()))

    def prepare(given: tf.Tensor, length: tf.Tensor, scales: tf.Tensor) -> dict[str, tf.Tensor]:
        ids = given[0, : tf.cast(length[0], tf.int32)]
        ids = tf.boolean_mask(ids, ids != pad)
        match = tf.reduce_all(tf.stack([ids[:-1], ids[1:]], axis=1)[:, tf.newaxis] == old, axis=2)  # [N - 1, rules]
        for position, padding in enumerate(([0, 1], [1, 0])):
            change = tf.where(match, (new - old)[:, position], tf.zeros([], tf.int64))
            ids += tf.pad(tf.reduce_sum(change, axis=1), [padding])
        ids = tf.boolean_mask(ids, (ids != pad) & (ids < tokenizer.size))
        if tokenizer.add_blank:
            ids = tf.reshape(tf.stack([tf.fill(tf.shape(ids), blank), ids], axis=1), [-1])
            ids = tf.concat([ids, [blank]], axis=0)
        scales = {"noise_scale": scales[:1], "length_scale": scales[1:2]}
        return {"x": ids[tf.newaxis], "x_length": tf.shape(ids, tf.int64), **scales}

    return convert(tf.function(prepare, input_signature=_INPUTS))


def join_graphs(
    tokens: onnx.ModelProto, model: onnx.ModelProto, vocoder: onnx.ModelProto, *, channels_first: bool,
    gains: Mapping[int, float],
) -> onnx.ModelProto:
    """Join the graphs into one from Piper's inputs to `output`, float32[1, 1, 1, S].

    channels_first: whether the vocoder takes float32[1, M, T], as the model gives, or float32[1, T, M]; gains: factors
    of the samples by rows of the model's table, of which a further input, `sid`, chooses one if there are several.
    """
    has_table = any(entry.name == _SPEAKER for entry in model.graph.input)
    speaker = [entry for entry in model.graph.input if entry.name == _SPEAKER and len(gains) > 1]
    parts = [tokens, _with_prefix(model, "model/"), _with_prefix(vocoder, "vocoder/")]
    links = [helper.make_node("Identity", [entry.name], [f"model/{entry.name}"]) for entry in tokens.graph.output]
    order = [0, 1, 2] if channels_first else [0, 2, 1]
    turn = helper.make_node("Transpose", [f"model/{MEL}"], [parts[2].graph.input[0].name], perm=order)
    ends = [
        helper.make_node("Mul", [parts[2].graph.output[0].name, "gain"], ["amplified"]),
        helper.make_node("Abs", ["amplified"], ["magnitude"]),
        helper.make_node("ReduceMax", ["magnitude"], ["peak"]),
        helper.make_node("Max", ["peak", "one"], ["scale"]),  # a text that passes full scale becomes softer
        helper.make_node("Div", ["amplified", "scale"], ["samples"]),
        helper.make_node("Reshape", ["samples", "shape"], ["output"]),
    ]
    constants: dict[str, object] = {"one": np.ones([], np.float32), "shape": [1, 1, 1, -1]}
    tables: dict[str, object] = {"gain": np.array([*gains.values()], np.float32)}
    if has_table:
        tables[f"model/{_SPEAKER}"] = [*gains]
    if speaker:
        links += [helper.make_node("Gather", [f"all/{name}", _SPEAKER], [name]) for name in tables]
        tables = {f"all/{name}": values for name, values in tables.items()}
    constants |= tables
    graph = helper.make_graph(
        [*tokens.graph.node, *links, *parts[1].graph.node, turn, *parts[2].graph.node, *ends], "piper",
        [*tokens.graph.input, *speaker],
        [helper.make_tensor_value_info("output", onnx.TensorProto.FLOAT, [1, 1, 1, "samples"])],
        [tensor for part in parts for tensor in part.graph.initializer]
        + [numpy_helper.from_array(np.array(value), name) for name, value in constants.items()],
    )
    opsets = {entry.domain: entry for part in parts for entry in part.opset_import}
    return helper.make_model(graph, opset_imports=[*opsets.values()], ir_version=model.ir_version)


def _with_prefix(model: onnx.ModelProto, prefix: str) -> onnx.ModelProto:
    """Copy a model, with a prefix before every name."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    # Without these, the bodies of loops would keep the old names of the weights that they refer to.
    names = {tensor.name: f"{prefix}{tensor.name}" for tensor in model.graph.initializer}
    onnx.compose.add_prefix_graph(copy.graph, prefix, inplace=True, name_map=names)
    return copy
