"""`xtts-synth export --format onnx`: a folder that onnxruntime and sherpa-onnx speak with, without TensorFlow."""

import math
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from xtts.shared.errors import LockstepError, warn
from xtts.trainer.evaluation.synthesis_options import SynthesisOptions
from xtts.trainer.run.model_folder import GRAPH_FILE, write_description
from xtts.trainer.synth.export.joined_vocoder import join, load_joinable
from xtts.trainer.synth.export.onnx_tokens import TOKENS_FILE, metadata, tokens_file
from xtts.trainer.synth.onnx_names import MEL, NOISE, SCHEDULE, WANTED_FRAMES
from xtts.trainer.synth.onnx_runtime import first_line, open_session, refusals
from xtts.trainer.synth.reference_recording import read_recordings
from xtts.trainer.synth.voice_source import Source
from xtts.trainer.system.tensorflow_import import tensorflow_import

if TYPE_CHECKING:
    import onnx

_OPTIONAL = (SCHEDULE, NOISE, WANTED_FRAMES)
_TRIED_TOKENS = 12
_FEWEST_HALVED = 64
"""Values of the smallest weight that is stored as float16."""
_MOST_BYTES = 2**31 - 1
"""The largest message of protobuf, and so the largest graph in one file."""


@dataclass(frozen=True, kw_only=True)
class OnnxOptions:
    """What an ONNX graph holds besides the model."""

    vocoder: Path | None = None
    """An ONNX vocoder to put behind the model."""
    language: str | None = None
    """Fixed in the graph of a model of several."""
    speaker_wav: tuple[Path, ...] = ()
    """References of a model with voice latents: their mean is fixed in the graph."""
    float16: bool = False
    """Store the weights with 16 bits; a runtime makes float32 of them when it loads the graph."""


def save_onnx(source: Source, folder: Path, *, synthesis: SynthesisOptions, options: OnnxOptions) -> str:
    """Write `model.onnx`, `tokens.txt` and what Lockstep speaks with it into a folder; a line that says what they are.

    Raises:
        LockstepError: As in `make_graph`.
    """
    graph = make_graph(source, synthesis=synthesis, options=options)
    (folder / GRAPH_FILE).write_bytes(graph.data)
    (folder / TOKENS_FILE).write_text(tokens_file(source.voice.symbol_table), encoding="utf-8")
    write_description(folder, config=source.config(), voice=source.voice, language=options.language)
    return graph.described


class Graph(NamedTuple):
    """An ONNX model that has been tried."""

    data: bytes
    described: str


def make_graph(source: Source, *, synthesis: SynthesisOptions, options: OnnxOptions) -> Graph:
    """The model as one graph, with its metadata; synthesis: what it does where those inputs are left out.

    Raises:
        LockstepError: A package is missing, the vocoder is unusable, or the graph gets too large.
    """
    _check_packages()
    profile = source.voice.mel_profile
    references = read_recordings(options.speaker_wav, source)
    language = source.language(options.language)
    fixed = language if options.language or len(source.voice.languages) == 1 else None
    vocoder = load_joinable(options.vocoder, profile, warn) if options.vocoder else None
    with tensorflow_import():
        from xtts.trainer.synth.export.onnx_graph import convert_model
        from xtts.trainer.synth.tensorflow_speaker import load_model
    graph = convert_model(load_model(source), source, options=synthesis, language=fixed, references=references)
    if options.float16:
        _halve(graph)
    if vocoder is not None:
        graph = join(graph, MEL, vocoder, profile.mel_channels)
    import onnx

    graph.producer_name = "lockstep-tts"
    onnx.helper.set_model_props(graph, metadata(source.voice, language=language, steps=synthesis.steps))
    inputs = ", ".join(entry.name for entry in graph.graph.input if entry.name not in _OPTIONAL)
    described = f"an ONNX graph from {inputs} to {graph.graph.output[0].name}, {synthesis.steps} steps"
    return Graph(_tried(graph), described)


def _halve(graph: "onnx.ModelProto") -> None:
    """Store the weights of the model as float16, each behind a cast to float32."""
    from onnx import TensorProto, helper, numpy_helper

    large = [
        tensor for tensor in graph.graph.initializer
        if tensor.data_type == TensorProto.FLOAT and tensor.name not in _OPTIONAL
        and math.prod(tensor.dims) >= _FEWEST_HALVED
    ]  # fmt: skip
    casts = []
    for tensor in large:
        casts.append(helper.make_node("Cast", [f"{tensor.name}/float16"], [tensor.name], to=TensorProto.FLOAT))
        half = numpy_helper.to_array(tensor).astype(np.float16)
        tensor.CopyFrom(numpy_helper.from_array(half, f"{tensor.name}/float16"))
    nodes = [*casts, *graph.graph.node]
    del graph.graph.node[:]
    graph.graph.node.extend(nodes)


def _check_packages() -> None:
    missing = [name for name in ("onnx", "onnxruntime", "tf2onnx") if find_spec(name) is None]
    if missing:
        found, fix = f"{' and '.join(missing)} not installed", "pip install 'lockstep-tts[onnx]'"
        raise LockstepError("--format onnx", found=found, fix=fix)


def _tried(graph: "onnx.ModelProto") -> bytes:
    """A graph as bytes, after it has spoken a few tokens, one frame each."""
    where = "--format onnx"
    if (size := graph.ByteSize()) > _MOST_BYTES:
        raise LockstepError(where, found=f"a graph of {size:,} bytes", expected=f"at most {_MOST_BYTES:,}")
    values: dict[str, np.ndarray] = {
        "x": np.ones([1, _TRIED_TOKENS], np.int64),
        "x_length": np.array([_TRIED_TOKENS], np.int64),
        "noise_scale": np.ones([1], np.float32),
        "length_scale": np.full([1], 1e-3, np.float32),
        "sid": np.zeros([1], np.int64),
        "language": np.zeros([1], np.int64),
    }
    data: bytes = graph.SerializeToString()
    session = open_session(data, where)
    try:
        output: np.ndarray = session.run(None, {entry.name: values[entry.name] for entry in session.get_inputs()})[0]
    except refusals() as error:
        found = f"does not run ({first_line(error)})"
        raise LockstepError(where, found=found, expected="a graph that onnxruntime runs") from None
    if not (output.dtype == np.float32 and output.size and np.isfinite(output).all()):
        raise LockstepError(where, found=f"gives {output.dtype} {list(output.shape)}", expected="finite float32 values")
    return data
