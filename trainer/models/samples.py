"""Samples that a run makes at intervals, to follow what its model does."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, Union

import numpy as np

from xtts.shared.audio.mel_profiles import MelProfile

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SAMPLES = "samples"
"""Name of the step that speaks them."""
Shown: TypeAlias = Union[str, np.ndarray, "Figure"]
"""Item for TensorBoard: a text, samples float32[S] or a picture."""


class Samples:
    """Fixed held-out sentences, spoken in one locked shape that is compiled once; here there are none."""

    profile: MelProfile
    sentences: Sequence[Any] = ()

    @property
    def empty(self) -> bool:
        """Whether samples are off or the cache holds no validation clips."""
        return not self.sentences

    def speak(self) -> list[Any]:
        """Speak all sentences with the current weights; the first call compiles."""
        return []

    def finite(self, spoken: list[Any]) -> bool:
        """Whether all numbers of the speech are finite."""
        return True

    def measure(self, spoken: list[Any]) -> tuple[dict[str, float], str]:
        """(figures against the recordings by name, a line that lists them)."""
        return {}, ""

    def recordings(self) -> Iterator[tuple[str, Shown]]:
        """The first sentences and their recordings, by tag."""
        yield from ()

    def show(self, spoken: list[Any]) -> Iterator[tuple[str, Shown]]:
        """Pictures and sounds of the first sentences, by tag."""
        yield from ()
