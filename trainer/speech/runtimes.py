"""Choice of the runtime that turns tokens into mels: the ONNX graph in onnxruntime, or TensorFlow."""

from collections.abc import Callable

from xtts.shared.errors import LockstepError
from xtts.trainer.speech.synthesis_options import SynthesisOptions
from xtts.trainer.speech.synthesizer import Runtime, Synthesizer
from xtts.trainer.speech.voice_source import Source
from xtts.trainer.system.tensorflow_import import tensorflow_import


def make_synthesizer(
    source: Source, options: SynthesisOptions, runtime: Runtime | None, tell: Callable[[str], None]
) -> Synthesizer:
    """Make a synthesizer, by default of ONNX; TensorFlow speaks without a graph, to imitate a recording, or on request.

    tell: receives a line before long work.

    Raises:
        LockstepError: The source cannot speak with this runtime.
    """
    if runtime == "tensorflow" or (runtime is None and (source.takes_recording or source.graph is None)):
        if not source.has_weights:
            found = f"{source.checkpoint} has an ONNX graph and no weights"
            raise LockstepError("--runtime tensorflow", found=found, expected="--runtime onnx")
        with tensorflow_import(shares_gpu=True):
            from xtts.trainer.speech.tensorflow_synthesizer import TensorFlowSynthesizer

        return TensorFlowSynthesizer(source, options, tell=tell)
    if source.takes_recording:
        found = "an ONNX graph takes no reference recording"
        raise LockstepError("--runtime onnx", found=found, expected="--runtime tensorflow")
    if source.graph is None:
        fix = f"export one: xtts-synth export --ckpt {source.checkpoint} --format onnx OUT"
        raise LockstepError("--runtime onnx", found=f"{source.checkpoint} has no ONNX graph", fix=fix)
    from xtts.trainer.speech.onnx_synthesizer import OnnxSynthesizer
    from xtts.trainer.system.onnx_file import read_file

    return OnnxSynthesizer(source, options, graph=read_file(source.graph), location=str(source.graph))
