"""Acoustic model and vocoder as ONNX graphs of dynamic sizes, without padding.

Letters: N tokens, T frames, M mel channels.
"""

import logging
import math
from collections.abc import Callable, Sequence
from importlib import metadata
from typing import TYPE_CHECKING

import numpy as np
import onnx
import tensorflow as tf

from xtts.shared.audio.speaker_encoder import VOICE, recorded_voice
from xtts.shared.errors import warn
from xtts.trainer.models.acoustic.acoustic_model import AcousticModel
from xtts.trainer.models.acoustic.networks import Conditioning, Vocabularies
from xtts.trainer.models.vocoder.vocoder import Vocoder
from xtts.trainer.speech.onnx_vocoder import PROFILE_KEY
from xtts.trainer.speech.synthesis_options import SynthesisOptions
from xtts.trainer.speech.synthesizer import DURATIONS, MEL, NOISE, OPTIONAL, SCHEDULE
from xtts.trainer.speech.voice_source import Source
from xtts.trainer.stored.model_folder import FEWEST_HALVED
from xtts.trainer.stored.stored_model import StoredModel

if TYPE_CHECKING:
    from tf2onnx.graph import Graph, Node

OPSET = 17
"""Version of ONNX's operators: runtimes since 2022 have it."""
INPUTS = {
    "x": tf.TensorSpec([1, None], tf.int64, "x"),
    "x_length": tf.TensorSpec([1], tf.int64, "x_length"),
    "noise_scale": tf.TensorSpec([1], tf.float32, "noise_scale"),
    "length_scale": tf.TensorSpec([1], tf.float32, "length_scale"),
}
"""Inputs of every graph, in the order of Matcha models for sherpa-onnx; `sid` and `language` follow if needed."""
_PAD = 0
_CONDITIONING = {
    "speaker": tf.TensorSpec([1], tf.int64, "sid"),
    "voice": tf.TensorSpec([1, VOICE], tf.float32, "voice"),
    "language": tf.TensorSpec([1], tf.int64, "language"),
}
"""Inputs of the graph by field of the conditioning."""


def load_model(stored: StoredModel) -> AcousticModel:
    """Load the model with a checkpoint's averaged weights, always in float32."""
    voice, mean, deviation = stored.voice, stored.voice.mel_mean, stored.voice.mel_deviation
    speakers, languages = max(len(voice.speakers), 1), len(voice.languages)
    rows = Vocabularies(len(voice.tokenizer.symbols), speakers=speakers, languages=languages)
    model = AcousticModel(stored.config().model, rows, voice.mel_profile, mean=mean, deviation=deviation)
    stored.restore(model.trainable_variables)
    return model


def convert_model(
    model: AcousticModel, source: Source, *, options: SynthesisOptions, language: str | None,
    recordings: Sequence[np.ndarray],
) -> onnx.ModelProto:
    """Convert the model to a graph from `INPUTS` to `MEL` and `DURATIONS`, with the weights inside.

    Optional inputs are constants until `with_optional_inputs`. The input `noise`, standard normal, ends the speech at
    its F frames. Without it, noise is drawn inside, and the speech has all its frames.

    options: their schedule is the default of that input; language: fixed in a model of several, which then has no
    input for it; recordings: float32[S] each at `RATE`, whose voice is fixed in the graph of a model that imitates;
    without them that is an input.
    """
    is_read = {
        "speaker": len(source.speakers) > 1, "voice": source.takes_recording,
        "language": len(source.voice.languages) > 1,
    }
    fixed: dict[str, np.ndarray] = {}
    if language is not None and is_read["language"]:
        fixed["language"] = np.array([source.voice.languages.index(language)], np.int32)
    if recordings:
        fixed["voice"] = recorded_voice(recordings, warn)[np.newaxis]
    given = {field: spec for field, spec in _CONDITIONING.items() if is_read[field] and field not in fixed}
    signature = INPUTS | {spec.name: spec for spec in given.values()}
    defaults = {  # an empty axis may have any size, and so may the schedule
        SCHEDULE: options.schedule,
        NOISE: np.zeros([1, 0, model.mel_channels], np.float32),
    }
    for name, value in defaults.items():
        shape = [None, 3] if name == SCHEDULE else [size or None for size in value.shape]
        signature[name] = tf.TensorSpec(shape, tf.as_dtype(value.dtype), name)
    longest = source.voice.shapes[-1].frames
    speak = tf.function(
        _speak(model, longest=longest, fixed=fixed, names=list(signature)), input_signature=[*signature.values()]
    )
    graph = convert(speak)
    required = [entry for entry in graph.graph.input if entry.name not in defaults]
    del graph.graph.input[:]
    graph.graph.input.extend(required)
    graph.graph.initializer.extend(onnx.numpy_helper.from_array(value, name) for name, value in defaults.items())
    return graph


def vocoder_graph(vocoder: Vocoder) -> onnx.ModelProto:
    """Convert a vocoder to a graph from `mel`, float32[1, M, T], to `samples`, float32[1, S], with float16 weights.

    It computes Fourier transforms as products of matrices, which every runtime has, and draws no random numbers.
    """
    profile = vocoder.profile
    mel = tf.TensorSpec([1, profile.mel_channels, None], tf.float32, "mel")  # as the graph of a voice gives it
    speak = tf.function(lambda mel: {"samples": vocoder.vocode(tf.transpose(mel, [0, 2, 1]))}, input_signature=[mel])
    graph = convert(speak)
    store_as_float16(graph)
    graph.producer_name, graph.producer_version = "lockstep-tts", metadata.version("lockstep-tts")
    described = {PROFILE_KEY: profile.name, "sample_rate": str(profile.sample_rate)}
    onnx.helper.set_model_props(graph, described | {"model_type": "hifigan"})  # sherpa-onnx's name of such a vocoder
    return graph


def _speak(
    model: AcousticModel, *, longest: int, fixed: dict[str, np.ndarray], names: list[str]
) -> Callable[..., dict[str, tf.Tensor]]:
    """Make the function of the graph; names: of its arguments."""

    def speak(*values: tf.Tensor) -> dict[str, tf.Tensor]:
        inputs = dict(zip(names, values, strict=True))
        ids = tf.cast(inputs["x"][0, : tf.cast(inputs["x_length"][0], tf.int32)], tf.int32)
        # Runtimes that put a pad around every token speak like those that do not.
        tokens = tf.boolean_mask(ids, ids != _PAD)[tf.newaxis]
        chosen = {field: inputs[spec.name] for field, spec in _CONDITIONING.items() if spec.name in inputs}
        chosen |= {field: tf.cast(row, tf.int32) for field, row in chosen.items() if field != "voice"}
        # Constants are made here: a tensor from outside would become an input of the graph.
        conditioning = Conditioning(**chosen, **{field: tf.constant(value) for field, value in fixed.items()})
        timed = model.time_tokens(
            tokens, tf.shape(tokens)[1:], longest=longest, speed=1.0 / inputs["length_scale"][0],
            conditioning=conditioning,
        )
        mel_length = tf.reduce_sum(timed.durations[0])[tf.newaxis]
        given, frames = inputs[NOISE], mel_length[0]
        drawn = tf.random.normal([1, tf.where(tf.shape(given)[1] > 0, 0, frames), given.shape[2]])
        noise = tf.concat([given[:, :frames], drawn], axis=1) * inputs["noise_scale"][0]
        mel = model.speak_tokens(timed, mel_length, noise, schedule=inputs[SCHEDULE], conditioning=conditioning)
        return {MEL: tf.transpose(mel, [0, 2, 1]), DURATIONS: timed.durations}  # in the order of their names

    return speak


def convert(speak: tf.types.experimental.PolymorphicFunction) -> onnx.ModelProto:
    """Convert a function with an input signature to a graph."""
    import tf2onnx

    logging.getLogger("tf2onnx").setLevel(logging.CRITICAL)  # it warns of every node that it keeps
    graph, _ = tf2onnx.convert.from_function(
        speak, input_signature=speak.input_signature, opset=OPSET, custom_rewriter=[_fuse_norms]
    )
    for node in graph.graph.node:
        if node.op_type == "Loop":
            _free_constants(node)
        if node.op_type.startswith("RandomNormal"):
            # A seed in the graph would be beyond the reach of onnxruntime.set_seed.
            kept = [attribute for attribute in node.attribute if attribute.name != "seed"]
            del node.attribute[:]
            node.attribute.extend(kept)
    converted: onnx.ModelProto = graph
    return converted


def _free_constants(loop: onnx.NodeProto) -> None:
    """Let the body of a loop refer to what no iteration changes, the weights above all, instead of carrying it along.

    Runtimes prepare weights once only where they know them to be constant.
    """
    body = next(attribute.g for attribute in loop.attribute if attribute.name == "body")
    sources = {node.output[0]: node.input[0] for node in body.node if node.op_type == "Identity"}
    outer = {}
    for position in reversed(range(2, len(loop.input))):  # inputs of both: iteration, condition, then what is carried
        carried, result = body.input[position].name, body.output[position - 1].name
        if sources.get(result, result) == carried:
            outer[carried] = loop.input[position]
            del loop.input[position], loop.output[position - 2], body.input[position], body.output[position - 1]
    for node in body.node:
        node.input[:] = [outer.get(name, name) for name in node.input]


def _fuse_norms(graph: "Graph", nodes: "list[Node]") -> "list[Node]":
    """Rewrite layer norms with their scale and shift as one operator each, for tf2onnx; the batch is one clip."""
    from tf2onnx.graph_matcher import GraphMatcher
    from tf2onnx.graph_matcher import OpTypePattern as Pattern

    centred = Pattern("Sub", name="centred", inputs=["*", Pattern("Mean")])
    variance = Pattern("Add|AddV2", inputs=[Pattern("Mean", inputs=[Pattern("Square"), "*"]), "*"])
    deviation = Pattern("Rsqrt", name="deviation", inputs=[variance])
    normed = Pattern("Mul", name="normed", inputs=[centred, deviation])
    # TensorFlow moves a constant scale to the smaller factor.
    scaled_deviation = Pattern("Mul", name="scaled_deviation", inputs=[deviation, "*"])
    for factors in ([normed, "*"], [centred, scaled_deviation]):
        pattern = Pattern("Add|AddV2", name="shifted", inputs=[Pattern("Mul", name="scaled", inputs=factors), "*"])
        for match in GraphMatcher(pattern, allow_reorder=True).match_ops(nodes):
            scaled, shifted = match.get_op("scaled"), match.get_op("shifted")
            inner = match.get_op("scaled_deviation"), match.get_op("deviation")
            weights = []
            for node, factor in (inner if inner[0] else (scaled, match.get_op("normed")), (shifted, scaled)):
                (weight,) = (name for name in node.input if name not in factor.output)
                flat = graph.make_const(f"{node.name}/flat", np.array([-1], np.int64)).output[0]
                weights.append(graph.make_node("Reshape", [weight, flat]).output[0])
            norm = graph.make_node(
                "LayerNormalization", [match.get_op("centred").input[0], *weights],
                attr={"axis": -1, "epsilon": 1e-5}, shapes=[graph.get_shape(shifted.output[0])],
                dtypes=[graph.get_dtype(shifted.output[0])],
            )
            graph.replace_all_inputs(shifted.output[0], norm.output[0])
    return list(graph.get_nodes())


def store_as_float16(graph: onnx.ModelProto) -> None:
    """Store the weights of the model as float16, each behind a cast to float32."""
    large = [
        tensor for tensor in graph.graph.initializer
        if tensor.data_type == onnx.TensorProto.FLOAT and tensor.name not in OPTIONAL
        and math.prod(tensor.dims) >= FEWEST_HALVED
    ]
    casts = []
    for tensor in large:
        casts.append(
            onnx.helper.make_node("Cast", [f"{tensor.name}/float16"], [tensor.name], to=onnx.TensorProto.FLOAT)
        )
        half = onnx.numpy_helper.to_array(tensor).astype(np.float16)
        tensor.CopyFrom(onnx.numpy_helper.from_array(half, f"{tensor.name}/float16"))
    nodes = [*casts, *graph.graph.node]
    del graph.graph.node[:]
    graph.graph.node.extend(nodes)
