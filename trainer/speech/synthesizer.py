"""From tokens to mels: the exported graph in onnxruntime."""

from collections.abc import Sequence

import numpy as np

from xtts.shared.audio.speaker_encoder import VOICE
from xtts.shared.errors import LockstepError
from xtts.trainer.speech.onnx_file import open_session, read_file, refusals, short_message
from xtts.trainer.speech.synthesis_options import SynthesisOptions
from xtts.trainer.speech.voice_source import GRAPH_FILE, Source

MEL = "mel"
"""The first output: float32[1, M, T], natural-log magnitude."""
DURATIONS = "token_frames"
"""The second output: int32[1, N], frames of each token but pads. Runtimes of Matcha models want the mel first."""
SCHEDULE, NOISE = "schedule", "noise"
"""Optional inputs: float32[N, 3] of `sampling_schedule`; standard normal float32[1, F, M], by default F = 0."""
OPTIONAL = (SCHEDULE, NOISE)
_THREADS = 1
"""Threads of an operator: the products of a sentence are small, and results must not depend on the number of cores."""
_REQUIRED = {"x", "x_length", "noise_scale", "length_scale"}
_CONDITIONING = {"sid", "language", "voice"}
"""Inputs of a model of several speakers, several languages, or one that imitates: int64[1] twice, float32[1, 296]."""


class Synthesizer:
    """Speaks tokens, any number, with one voice; one that imitates recordings needs `set_voice` first.

    The same arguments and options give the same mel, whatever was spoken before. `options` may be replaced between two
    calls of `speak`. Copies share what is loaded.
    """

    levels: dict[tuple[int, int, int, str], float]
    """Loudness in LUFS by speaker, language, nfe and solver, as far as measured; copies of one voice share it."""

    def __init__(self, source: Source, options: SynthesisOptions, *, graph: bytes, location: str) -> None:
        """Load a graph of `xtts-synth export --format onnx` and speak one token.

        location: origin of the graph, for messages.

        Raises:
            LockstepError: The graph does not turn tokens into a mel.
        """
        self.source, self.voice, self.options, self.location = source, source.voice, options, location
        self._most_frames, self._channels = self.voice.shapes[-1].frames, self.voice.mel_profile.mel_channels
        self._session = open_session(with_optional_inputs(graph), location, threads=_THREADS)
        self._conditioning = self._check_inputs()
        self.set_voice(np.zeros(VOICE, np.float32))
        self.speak([1], speaker=0, noise_key=0)

    def set_voice(self, voice: np.ndarray) -> None:
        """Set the voice to imitate, float32[296] of `recorded_voice`."""
        self._voice = voice.astype(np.float32)[np.newaxis]
        self.levels = {}

    def speak(
        self, ids: Sequence[int], *, speaker: int, noise_key: int, language: int = 0
    ) -> tuple[np.ndarray, np.ndarray]:
        """Speak N tokens: (mel float32[T, M], natural-log magnitude, durations int[N], frames of each token).

        The largest shape bounds T; durations of a larger sum are cut off.

        ids: N tokens, speaker and language: table rows, noise_key: together with the seed it determines the noise.
        """
        # All frames are drawn, whatever the length: the noise of a frame is the same in every text.
        noise = np.random.default_rng([self.options.seed, noise_key]).standard_normal(
            (1, self._most_frames, self._channels), np.float32
        )
        inputs: dict[str, np.ndarray] = {
            "length_scale": np.array([1.0 / self.options.speed], np.float32),
            SCHEDULE: self.options.schedule,
            NOISE: noise,
        }
        given: dict[str, np.ndarray] = {
            "sid": np.array([speaker], np.int64), "language": np.array([language], np.int64), "voice": self._voice,
        }
        inputs = inputs | {name: given[name] for name in self._conditioning} | {
            "x": np.array([ids], np.int64),
            "x_length": np.array([len(ids)], np.int64),
            "noise_scale": np.array([self.options.temperature], np.float32),
        }
        try:
            mel, durations = self._session.run([MEL, DURATIONS], inputs)
        except refusals() as error:
            found = f"does not run on {len(ids)} tokens ({short_message(error)})"
            raise LockstepError(self.location, found=found) from None
        self._check_mel(mel)
        return mel[0].T, durations[0]

    def _check_inputs(self) -> set[str]:
        """Return the conditioning among the inputs; `LockstepError` for a graph of other inputs or outputs."""
        outputs = {tensor.name for tensor in self._session.get_outputs()}
        inputs = {tensor.name for tensor in self._session.get_inputs()}
        optional = {tensor.name for tensor in self._session.get_overridable_initializers()}
        fits = _REQUIRED <= inputs <= _REQUIRED | _CONDITIONING and {*OPTIONAL} <= optional
        if not fits or outputs != {MEL, DURATIONS}:
            names = ", ".join(sorted(inputs | optional))
            raise LockstepError(
                self.location, found=f"a graph of {names} that gives {', '.join(outputs)}",
                expected="one that xtts-synth export --format onnx has written", fix="export it again",
            )
        return inputs & _CONDITIONING

    def _check_mel(self, mel: np.ndarray) -> None:
        shape = list(mel.shape)
        fits = mel.dtype == np.float32 and mel.ndim == 3 and shape[:2] == [1, self._channels]
        if not (fits and shape[2] and np.isfinite(mel).all()):
            raise LockstepError(
                self.location, found=f"a mel {mel.dtype} {shape}", expected=f"finite float32 [1, {self._channels}, T]"
            )


def load_synthesizer(source: Source, options: SynthesisOptions) -> Synthesizer:
    """Load the graph in the folder of a voice; `LockstepError` if it has none."""
    path = source.folder / GRAPH_FILE
    if not path.is_file():
        raise LockstepError(
            str(source.folder), found=f"weights without a {GRAPH_FILE}", expected="a voice that speaks",
            fix=f"xtts-synth export --ckpt {source.folder} --format onnx OUT",
        )
    return Synthesizer(source, options, graph=read_file(path), location=str(path))


def with_optional_inputs(graph: bytes) -> bytes:
    """Declare `OPTIONAL` as inputs, which are constants in the file: onnxruntime warns of inputs that are both.

    Protobuf merges fields that follow a message: ModelProto.graph is field 7, GraphProto.input 11, ValueInfoProto.name
    1 and .type 2, TypeProto.tensor_type 1, its elem_type 1.
    """
    float32 = _field(2, _field(1, bytes([8, 1])))
    return graph + _field(7, b"".join(_field(11, _field(1, name.encode()) + float32) for name in OPTIONAL))


def _field(index: int, content: bytes) -> bytes:
    """Encode a field of a protobuf message, of at most 127 bytes."""
    return bytes([8 * index + 2, len(content)]) + content
