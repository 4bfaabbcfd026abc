"""Choice of the engine that turns tokens into mels: TensorFlow, or the exported ONNX graph in onnxruntime."""

import os
from collections.abc import Callable
from importlib.util import find_spec

from xtts.shared.errors import LockstepError
from xtts.trainer.evaluation.synthesis_options import SynthesisOptions
from xtts.trainer.synth.synthesizer import Engine, Synthesizer
from xtts.trainer.synth.voice_source import Source
from xtts.trainer.system.tensorflow_import import GPUS, tensorflow_import


def make_synthesizer(
    source: Source, options: SynthesisOptions, engine: Engine | None, tell: Callable[[str], None]
) -> Synthesizer:
    """Make a synthesizer; by default of ONNX if there is a graph, else of TensorFlow.

    A graph is in an exported folder, or kept for a run or weights that ONNX has spoken with before. tell: gets the
    chosen engine, and a line before work that takes long.

    Raises:
        LockstepError: The source cannot speak with this engine.
    """
    if engine is None:
        engine = "onnx" if not source.has_weights or _has_graph(source) else "tensorflow"
        later = "" if engine == "onnx" or _obstacle(source) else "; --engine onnx begins sooner, from its second use on"
        tell(f"{source.checkpoint}: engine {engine}{later}")
    if engine == "onnx":
        return _onnx(source, options, tell)
    if not source.has_weights:
        raise LockstepError(
            "--engine tensorflow", found=f"{source.checkpoint} has an ONNX graph and no weights",
            expected="--engine onnx",
        )  # fmt: skip
    return _tensorflow(source, options, tell)


def make_fastest_synthesizer(source: Source, options: SynthesisOptions, tell: Callable[[str], None]) -> Synthesizer:
    """Make a synthesizer of ONNX, or of TensorFlow if ONNX cannot or there is a GPU; `tell` gets the reason."""
    if not source.has_weights:
        return _onnx(source, options, tell)
    if (reason := _obstacle(source) or _gpu()) is None:
        try:
            return _onnx(source, options, tell)
        except LockstepError as error:
            reason = str(error)
    tell(f"{source.checkpoint}: engine tensorflow, since {reason}")
    return _tensorflow(source, options, tell)


def _onnx(source: Source, options: SynthesisOptions, tell: Callable[[str], None]) -> Synthesizer:
    if source.has_weights and (reason := _obstacle(source)) is not None:
        raise LockstepError("--engine onnx", found=reason, expected="--engine tensorflow")
    from xtts.trainer.synth.onnx_file import read_file
    from xtts.trainer.synth.onnx_synthesizer import OnnxSynthesizer

    if source.graph is not None:
        location, graph = str(source.graph), read_file(source.graph)
    else:
        from xtts.trainer.synth.export.onnx_model import kept_graph

        location, graph = f"the ONNX graph of {source.checkpoint}", kept_graph(source, tell)
    return OnnxSynthesizer(source, options, graph=graph, location=location)


def _tensorflow(source: Source, options: SynthesisOptions, tell: Callable[[str], None]) -> Synthesizer:
    with tensorflow_import(shares_gpu=True):
        from xtts.trainer.synth.tensorflow_synthesizer import TensorFlowSynthesizer

    return TensorFlowSynthesizer(source, options, tell=tell)


def _has_graph(source: Source) -> bool:
    """Whether a graph that can speak for a source with weights exists already."""
    if _obstacle(source) is not None:
        return False
    from xtts.trainer.synth.export.onnx_model import kept_graph_file

    return source.graph is not None or kept_graph_file(source).is_file()


def _obstacle(source: Source) -> str | None:
    """Reason why no graph can speak for a source with weights; None if one can."""
    if source.takes_recording:
        return "an ONNX graph takes no reference recording"
    needed = ("onnxruntime",) if source.graph else ("onnx", "onnxruntime", "tf2onnx")
    missing = [name for name in needed if find_spec(name) is None]
    return f"{' and '.join(missing)} not installed (pip install 'lockstep-tts[onnx]')" if missing else None


def _gpu() -> str | None:
    """Reason to prefer TensorFlow if there may be a GPU, without importing it: the graph runs on the CPU."""
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1")
    return "there is a GPU" if any(GPUS.glob("*")) and not hidden else None
