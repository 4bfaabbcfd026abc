"""Interface of every runtime, which turns tokens into mels."""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from xtts.trainer.speech.synthesis_options import SynthesisOptions
from xtts.trainer.stored.voice_description import Voice

Runtime = Literal["onnx", "tensorflow"]


class Synthesizer:
    """Speaks token sequences with one model; one that imitates recordings needs `set_voice` first.

    The same arguments and options give the same mel, whatever was spoken before. `options` may be replaced between two
    calls of `speak`.
    """

    runtime: Runtime
    voice: Voice
    options: SynthesisOptions
    compile_seconds: float
    """Seconds spent so far on compiling or loading the model."""
    levels: dict[tuple[int, int, int, str], float]
    """Loudness in LUFS by speaker, language, nfe and solver, as far as measured; copies of one voice share it."""

    def prepare_all(self, options: Sequence[SynthesisOptions]) -> None:
        """Compile or load every shape for each of these options; a graph of any size has nothing to prepare."""

    def set_voice(self, voice: np.ndarray) -> None:
        """Set the voice, float32[256] of `recorded_voice`, of a source that takes recordings."""
        raise NotImplementedError

    def count_frames(self, ids: Sequence[int], *, speaker: int, language: int = 0) -> int:
        """Count the frames of tokens at speed 1 without making their mel; arguments as in `speak`."""
        raise NotImplementedError

    def speak(
        self, ids: Sequence[int], *, speaker: int, noise_key: int, language: int = 0, frames: int = 0
    ) -> tuple[np.ndarray, np.ndarray]:
        """Speak tokens that fit the largest shape: (mel float32[T, M], natural-log magnitude, durations int[N]).

        The durations are the frames of each token; if they sum up to more than T, the speech exceeds every shape.

        ids: N tokens, speaker and language: table rows, noise_key: together with the seed it determines the noise,
        frames: length of the speech, at least one frame per token; 0 for what the durations sum up to.
        """
        raise NotImplementedError

    def readiness(self) -> str:
        """Describe what was compiled or loaded and how long that took."""
        raise NotImplementedError
