"""Chooses what turns tokens into mels: TensorFlow, or the exported ONNX graph in onnxruntime."""

import os
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from xtts.shared.errors import LockstepError
from xtts.trainer.evaluation.synthesis_options import SynthesisOptions
from xtts.trainer.synth.onnx_file import read_onnx_file
from xtts.trainer.synth.speaker import Engine, Speaker
from xtts.trainer.synth.voice_source import Source
from xtts.trainer.system.tensorflow_import import tensorflow_import

_GPUS = Path("/proc/driver/nvidia/gpus")


def make_speaker(
    source: Source, options: SynthesisOptions, engine: Engine | None, tell: Callable[[str], None]
) -> Speaker:
    """A speaker of an engine, by default of the folder's own: TensorFlow, or ONNX where there is only a graph.

    tell: gets a line before work that takes long.

    Raises:
        LockstepError: The source cannot speak with this engine.
    """
    if source.graph is not None:
        if engine == "tensorflow":
            raise LockstepError(
                "--engine tensorflow", found=f"{source.checkpoint} has an ONNX graph and no weights",
                expected="--engine onnx",
            )  # fmt: skip
        from xtts.trainer.synth.onnx_speaker import OnnxSpeaker

        where = str(source.graph)
        data = read_onnx_file(source.graph, where=where, kind="an acoustic model").data
        return OnnxSpeaker(source, options, graph=data, where=where)
    return _onnx(source, options, tell) if engine == "onnx" else _tensorflow(source, options)


def make_fastest_speaker(source: Source, options: SynthesisOptions, tell: Callable[[str], None]) -> Speaker:
    """A speaker of ONNX, or of TensorFlow where that is not possible or there is a GPU; `tell` gets the reason."""
    if source.graph is None:
        if (reason := _obstacle(source) or _gpu()) is None:
            try:
                return _onnx(source, options, tell)
            except LockstepError as error:
                reason = str(error)
        tell(f"{source.checkpoint}: engine tensorflow, since {reason}")
    return make_speaker(source, options, None, tell)


def _onnx(source: Source, options: SynthesisOptions, tell: Callable[[str], None]) -> Speaker:
    if (reason := _obstacle(source)) is not None:
        raise LockstepError("--engine onnx", found=reason, expected="--engine tensorflow")
    from xtts.trainer.synth.export.kept_graph import kept_graph
    from xtts.trainer.synth.onnx_speaker import OnnxSpeaker

    graph = kept_graph(source, tell)
    return OnnxSpeaker(source, options, graph=graph, where=f"the ONNX graph of {source.checkpoint}")


def _tensorflow(source: Source, options: SynthesisOptions) -> Speaker:
    with tensorflow_import():
        from xtts.trainer.synth.tensorflow_speaker import TensorFlowSpeaker

    return TensorFlowSpeaker(source, options)


def _obstacle(source: Source) -> str | None:
    """Why the exported graph cannot speak for a checkpoint, if it cannot."""
    if source.takes_recording:
        return "an ONNX graph takes no reference recording"
    missing = [name for name in ("onnx", "onnxruntime", "tf2onnx") if find_spec(name) is None]
    return f"{' and '.join(missing)} not installed (pip install 'lockstep-tts[onnx]')" if missing else None


def _gpu() -> str | None:
    """Whether TensorFlow may have a GPU, known without its import: the graph runs on the CPU."""
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1")
    return "there is a GPU" if any(_GPUS.glob("*")) and not hidden else None
