"""The speech of a run in the voices of references, and whether its words are found again."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from xtts.trainer.evaluation.figures import distance_table
from xtts.trainer.evaluation.synthesis_options import SynthesisOptions
from xtts.trainer.synth.voice_source import open_source
from xtts.trainer.system.tensorflow_import import tensorflow_import


def speak_all(
    run: Path, texts: Mapping[str, Sequence[str]], references: Mapping[str, Sequence[np.ndarray]], count: int
) -> dict[str, list[np.ndarray]]:
    """Log-mels float32[T, M] of each voice's texts; sentence i has the voice of `count` references from the i-th on."""
    with tensorflow_import():
        from xtts.trainer.synth.tensorflow_speaker import TensorFlowSpeaker

    source = open_source(run)
    speaker = TensorFlowSpeaker(source, SynthesisOptions())
    spoken: dict[str, list[np.ndarray]] = {}
    for name, sentences in texts.items():
        pieces = references[name]
        for number, text in enumerate(sentences):
            speaker.encode_reference(*(pieces[(number + i) % len(pieces)] for i in range(count)))
            ids = source.voice.symbol_table.encode(text).ids
            spoken.setdefault(name, []).append(speaker.speak(ids, speaker=0, number=0).mel)
    return spoken


def retrieved(spoken: Sequence[np.ndarray], recordings: Sequence[np.ndarray]) -> np.ndarray:
    """Whether recording i is the nearest to sentence i by MCD-DTW: bool[N]; recordings: of at least N sentences."""
    nearest: np.ndarray = distance_table(spoken, recordings).argmin(axis=1)
    return nearest == np.arange(len(spoken))
