"""The graph of a Piper voice: phonemes to tokens, acoustic model and vocoder, joined."""

from collections.abc import Mapping

import numpy as np
import onnx
import tensorflow as tf
from onnx import TensorProto, helper

from xtts.shared.text.tokenizer import BLANK, PAD, Tokenizer
from xtts.trainer.synth.export.onnx_graph import convert
from xtts.trainer.synth.onnx_synthesizer import MEL

_INPUTS = {
    "input": tf.TensorSpec([1, None], tf.int64, "input"),
    "input_lengths": tf.TensorSpec([1], tf.int64, "input_lengths"),
    "scales": tf.TensorSpec([3], tf.float32, "scales"),
}
"""Phoneme ids, how many to speak, and (noise_scale, length_scale, noise_w), the last without effect."""
_SPEAKER = "sid"
_OUTPUT = "output"
"""float32[1, 1, 1, S], the shape of Piper's own voices."""
Pair = tuple[int, int]


def token_graph(tokenizer: Tokenizer, rules: Mapping[Pair, Pair]) -> onnx.ModelProto:
    """Convert the step from `_INPUTS` to the inputs of the acoustic model; rules: as in `_tokens`."""

    def prepare(ids: tf.Tensor, length: tf.Tensor, scales: tf.Tensor) -> dict[str, tf.Tensor]:
        tokens = _tokens(ids[0, : tf.cast(length[0], tf.int32)], tokenizer, rules)
        return {
            "x": tokens[tf.newaxis], "x_length": tf.shape(tokens, tf.int64),
            "noise_scale": scales[:1], "length_scale": scales[1:2],
        }  # fmt: skip

    return convert(tf.function(prepare, input_signature=[*_INPUTS.values()]))


def _tokens(ids: tf.Tensor, tokenizer: Tokenizer, rules: Mapping[Pair, Pair]) -> tf.Tensor:
    """Turn phoneme ids int64[N] into token ids: without pads, pairs replaced by `rules`, with blanks if needed.

    Ids from `tokenizer.size` on are marks without a token of their own, left out unless a rule needs them.
    """
    pad, blank = tokenizer.symbols.index(PAD), tokenizer.symbols.index(BLANK)
    ids = tf.boolean_mask(ids, ids != pad)
    old, new = (np.array([*pairs], np.int64).reshape(-1, 2) for pairs in (rules, rules.values()))
    match = tf.reduce_all(tf.stack([ids[:-1], ids[1:]], axis=1)[:, tf.newaxis] == old, axis=2)  # [N - 1, rules]
    for position, padding in ((0, [0, 1]), (1, [1, 0])):
        change = tf.reduce_sum(tf.where(match, (new - old)[:, position], tf.zeros([], tf.int64)), axis=1)
        ids += tf.pad(change, [padding])
    ids = tf.boolean_mask(ids, (ids != pad) & (ids < tokenizer.size))
    if tokenizer.add_blank:
        ids = tf.reshape(tf.stack([ids, tf.fill(tf.shape(ids), np.int64(blank))], axis=1), [-1])
        ids = tf.concat([[np.int64(blank)], ids], axis=0)
    return ids


def join_graphs(
    tokens: onnx.ModelProto, model: onnx.ModelProto, vocoder: onnx.ModelProto, *, channels_first: bool
) -> onnx.ModelProto:
    """Join the three graphs to one from `_INPUTS`, and `sid` where the model has it, to `_OUTPUT`.

    channels_first: whether the vocoder takes float32[1, M, T], as the model gives, or float32[1, T, M].
    """
    speaker = [_SPEAKER] * any(entry.name == _SPEAKER for entry in model.graph.input)
    names = [*(entry.name for entry in tokens.graph.output), *speaker]
    mel, samples = f"model/{MEL}", f"vocoder/{vocoder.graph.output[0].name}"
    turn = {"op_type": "Identity"} if channels_first else {"op_type": "Transpose", "perm": [0, 2, 1]}
    parts = [tokens, onnx.compose.add_prefix(model, "model/"), onnx.compose.add_prefix(vocoder, "vocoder/")]
    nodes = [
        *parts[0].graph.node,
        *(helper.make_node("Identity", [name], [f"model/{name}"]) for name in names),
        *parts[1].graph.node,
        helper.make_node(inputs=[mel], outputs=[parts[2].graph.input[0].name], **turn),
        *parts[2].graph.node,
        helper.make_node("Clip", [samples, "lowest", "highest"], ["clipped"]),
        helper.make_node("Reshape", ["clipped", "output_shape"], [_OUTPUT]),
    ]
    constants = {"lowest": np.float32(-1), "highest": np.float32(1), "output_shape": np.array([1, 1, 1, -1])}
    graph = helper.make_graph(
        nodes, "piper",
        [
            helper.make_tensor_value_info("input", TensorProto.INT64, [1, "phonemes"]),
            helper.make_tensor_value_info("input_lengths", TensorProto.INT64, [1]),
            helper.make_tensor_value_info("scales", TensorProto.FLOAT, [3]),
            *(helper.make_tensor_value_info(name, TensorProto.INT64, [1]) for name in speaker),
        ],
        [helper.make_tensor_value_info(_OUTPUT, TensorProto.FLOAT, [1, 1, 1, "samples"])],
        [
            *(tensor for part in parts for tensor in part.graph.initializer),
            *(onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()),
        ],
    )  # fmt: skip
    opsets = {entry.domain: entry for part in parts for entry in part.opset_import}
    return helper.make_model(graph, opset_imports=[*opsets.values()], ir_version=model.ir_version)
