"""What turns tokens into mels: the same for every engine."""

from collections.abc import Sequence
from typing import Literal, Protocol

import numpy as np

from xtts.shared.cache.bucket_shapes import BucketShape
from xtts.trainer.evaluation.synthesis_options import SynthesisOptions
from xtts.trainer.evaluation.voice_description import Voice

Engine = Literal["onnx", "tensorflow"]


class Synthesizer(Protocol):
    """Speaks token sequences with one model; with voice latents, call `encode_reference` first.

    The same tokens, options and rows give the same mel, whatever was spoken before. `options` may be replaced between
    two calls of `speak`.
    """

    engine: Engine
    voice: Voice
    options: SynthesisOptions
    compile_seconds: float
    """Of making the model ready, so far."""

    def trace(self, largest: BucketShape) -> None:
        """Trace the shapes up to `largest` for the steps of `options`, before any is prepared."""

    def prepare(self, shape: BucketShape) -> None:
        """Make a shape ready for the steps of `options`."""

    def encode_reference(self, *mels: np.ndarray) -> None:
        """Set the voice to the mean of recordings, log-mel float32[T, M]; `LockstepError` if the model takes none."""

    def count_frames(self, ids: Sequence[int], *, speaker: int, language: int = 0) -> int:
        """Frames of some tokens at speed 1, without making their mel; the arguments are those of `speak`."""
        ...

    def speak(
        self, ids: Sequence[int], *, speaker: int, number: int, language: int = 0, frames: int = 0
    ) -> tuple[np.ndarray, np.ndarray]:
        """Speak tokens that fit the largest shape: (mel float32[T, M], natural-log magnitude, durations int[N]).

        The durations are the frames of each token; if they sum up to more than T, the speech exceeds every shape.
        `number` keys the noise, speaker and language are table rows, frames: those of the speech, at least one for each
        token; 0 for as many as the durations have.
        """
        ...

    def readiness(self) -> str:
        """What was made ready and how long that took, for people."""
        ...
