"""Synthesis with the model in TensorFlow: one locked, compiled function per output shape."""

import time
from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf

from xtts.shared.audio.speaker_encoder import EMBEDDING
from xtts.shared.cache.bucket_shapes import BucketShape
from xtts.shared.errors import counted_noun
from xtts.trainer.models.acoustic.acoustic_model import AcousticModel
from xtts.trainer.models.acoustic.conditioning import Conditioning, Vocabularies
from xtts.trainer.speech.onnx_synthesizer import WANTED_FRAMES
from xtts.trainer.speech.synthesis_options import SynthesisOptions
from xtts.trainer.speech.synthesizer import Synthesizer
from xtts.trainer.speech.voice_source import Source

Generated = dict[str, tf.Tensor]
"""`mel` float32[1, T, M], natural-log magnitude, `mel_length` int32[1] and `durations` int32[1, L], in frames."""


def load_model(source: Source) -> AcousticModel:
    """Load the model with a checkpoint's averaged weights, always in float32."""
    voice, mean, deviation = source.voice, source.voice.mel_mean, source.voice.mel_deviation
    speakers, languages = max(len(voice.speakers), 1), len(voice.languages)
    rows = Vocabularies(len(voice.tokenizer.symbols), speakers=speakers, languages=languages)
    model = AcousticModel(source.model, rows, voice.mel_profile, mean=mean, deviation=deviation)
    source.restore(model.trainable_variables)
    return model


def generate_signature(source: Source, tokens: int) -> list[tf.TensorSpec]:
    """The locked signature of one shape: tokens int32[1, L], the scalars of a `SynthesisOptions`, `WANTED_FRAMES`.

    Then the conditioning that the model reads: speaker int32[1], voice float32[1, 256], language int32[1].
    """
    specs = [tf.TensorSpec([1, tokens], tf.int32, "tokens"), tf.TensorSpec([1], tf.int32, "token_length")]
    specs += [tf.TensorSpec([], tf.float32, "temperature"), tf.TensorSpec([], tf.float32, "speed")]
    specs += [tf.TensorSpec([2], tf.int32, "seed"), tf.TensorSpec([1], tf.int32, WANTED_FRAMES)]
    conditioning = {
        "speaker": tf.TensorSpec([1], tf.int32, "speaker"),
        "voice": tf.TensorSpec([1, EMBEDDING], tf.float32, "voice"),
        "language": tf.TensorSpec([1], tf.int32, "language"),
    }
    return [*specs, *(conditioning[kind] for kind in source.conditioning)]


def generator(model: AcousticModel, frames: int, conditioning: Sequence[str]) -> Callable[..., Generated]:
    """Return a function that generates T = `frames` frames, of schedule float32[N, 3] and `generate_signature`.

    conditioning: names of its last inputs, as in `Source.conditioning`.
    """

    def generate(
        schedule: tf.Tensor, tokens: tf.Tensor, token_length: tf.Tensor, temperature: tf.Tensor, speed: tf.Tensor,
        seed: tf.Tensor, wanted_frames: tf.Tensor, *conditions: tf.Tensor,
    ) -> Generated:  # fmt: skip
        noise = tf.random.stateless_normal([1, frames, model.mel_channels], seed)
        mel, mel_length, durations = model.generate(
            tokens, token_length, noise=noise, schedule=schedule, temperature=temperature, speed=speed,
            conditioning=Conditioning(**dict(zip(conditioning, conditions, strict=True))), wanted_frames=wanted_frames,
        )  # fmt: skip
        return {"mel": mel, "mel_length": mel_length, "durations": durations}

    return generate


class TensorFlowSynthesizer(Synthesizer):
    """Speaks with a checkpoint or a folder of safetensors; every `nfe` has its own compiled functions."""

    runtime = "tensorflow"

    def __init__(
        self, source: Source, options: SynthesisOptions, *, tell: Callable[[str], None] = lambda line: None
    ) -> None:
        """Load the model; tell: receives a line before each compilation."""
        self.source, self.voice, self.options = source, source.voice, options
        self._tell, self._last_seconds, self.levels = tell, 0.0, {}
        self.model = load_model(source)
        self.compile_seconds = 0.0
        self._traced: dict[tuple[int, BucketShape], Callable[..., Generated]] = {}
        self._ready = set[tuple[int, BucketShape]]()
        self._voice = tf.zeros([1, EMBEDDING])

    def trace(self, largest: BucketShape) -> None:
        """Trace the shapes up to `largest` for the evaluations of `options`, unless that has been done (0.3 s each).

        XLA's cache identifies a function by its trace order, so smaller shapes are always traced.
        """
        for shape in self.voice.shapes[: self.voice.shapes.index(largest) + 1]:
            if (program := (self.options.nfe, shape)) not in self._traced:
                schedule = tf.TensorSpec([self.options.nfe, 3], tf.float32, "schedule")
                function = tf.function(
                    generator(self.model, shape.frames, self.source.conditioning),
                    input_signature=[schedule, *generate_signature(self.source, shape.tokens)], jit_compile=True,
                )  # fmt: skip
                self._traced[program] = function.get_concrete_function()

    def prepare_all(self, options: Sequence[SynthesisOptions]) -> None:
        """Implement `Synthesizer.prepare_all`; all are traced first, so that XLA's cache has them at the next start."""
        for each in options:
            self.options = each
            self.trace(self.voice.shapes[-1])
        for each in options:
            self.options = each
            for shape in self.voice.shapes:
                self.prepare(shape)

    def prepare(self, shape: BucketShape) -> None:
        """Compile or load the function of a shape for the evaluations of `options`, unless that has been done.

        It speaks an empty text once, so that no real text waits.
        """
        if (program := (self.options.nfe, shape)) in self._ready:
            return
        last = float(f"{self._last_seconds:.1g}")
        seconds = f"{last:g} s" if last else "10 s, less if it was compiled before"
        self._tell(f"compiling for up to {shape.tokens} tokens, {shape.frames} frames: about {seconds}")
        began = time.perf_counter()
        self.trace(shape)
        self._traced[program](*self._arguments(shape, [], 0, 0, 0))
        self._last_seconds = time.perf_counter() - began
        self.compile_seconds += self._last_seconds
        self._ready.add(program)

    def readiness(self) -> str:
        """Describe what was compiled or loaded and how long that took."""
        return f"{counted_noun(len(self._ready), 'shape')} made ready in {self.compile_seconds:.1f} s"

    def set_voice(self, voice: np.ndarray) -> None:
        """Implement `Synthesizer.set_voice`."""
        self._voice = tf.constant(voice[np.newaxis])
        self.levels = {}

    def count_frames(self, ids: Sequence[int], *, speaker: int, language: int = 0) -> int:
        """Implement `Synthesizer.count_frames`; not compiled, so that no shape waits for it."""
        timed = self.model.time_tokens(
            tf.constant([[*ids]], tf.int32), tf.constant([len(ids)]), longest=self.voice.shapes[-1].frames,
            speed=tf.constant(1.0), conditioning=Conditioning(**self._conditioning(speaker, language)),
        )  # fmt: skip
        return int(tf.reduce_sum(timed.durations))

    def speak(
        self, ids: Sequence[int], *, speaker: int, noise_key: int, language: int = 0, frames: int = 0
    ) -> tuple[np.ndarray, np.ndarray]:
        """Implement `Synthesizer.speak`: try the smallest shape for the tokens, then the smallest for the frames."""
        fitting = [shape for shape in self.voice.shapes if shape.tokens >= len(ids)]
        shape = next((candidate for candidate in fitting if candidate.frames >= frames), fitting[-1])
        while True:
            mel, durations = self.run(shape, self._arguments(shape, ids, speaker, language, noise_key, frames))
            length = durations.sum()
            longer = [larger for larger in fitting if larger.frames > shape.frames]
            if length <= shape.frames or not longer:
                return mel[:length], durations[: len(ids)]
            shape = next((larger for larger in longer if larger.frames >= length), longer[-1])

    def run(self, shape: BucketShape, arguments: list[tf.Tensor]) -> tuple[np.ndarray, np.ndarray]:
        """Speak in one shape: (mel float32[T, M], durations int32[L] of all its tokens, padding included)."""
        self.prepare(shape)
        spoken = self._traced[self.options.nfe, shape](*arguments)
        return spoken["mel"][0].numpy(), spoken["durations"][0].numpy()

    def _arguments(
        self, shape: BucketShape, ids: Sequence[int], speaker: int, language: int, noise_key: int, frames: int = 0
    ) -> list[tf.Tensor]:
        tokens = np.zeros([1, shape.tokens], np.int32)
        tokens[0, : len(ids)] = ids
        values: list[tf.Tensor] = [
            tf.constant(self.options.schedule),
            tf.constant(tokens),
            tf.constant([len(ids)], tf.int32),
            tf.constant(self.options.temperature, tf.float32),
            tf.constant(self.options.speed, tf.float32),
            tf.constant([self.options.seed, noise_key], tf.int32),
            tf.constant([frames], tf.int32),
        ]
        return [*values, *self._conditioning(speaker, language).values()]

    def _conditioning(self, speaker: int, language: int) -> dict[str, tf.Tensor]:
        """The fields of `Conditioning` that the model reads."""
        conditioning = {
            "speaker": tf.constant([speaker], tf.int32),
            "voice": self._voice,
            "language": tf.constant([language], tf.int32),
        }
        return {kind: conditioning[kind] for kind in self.source.conditioning}
