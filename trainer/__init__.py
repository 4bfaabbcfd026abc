"""Stage 2: a cache to a trained model; synthesis and the doctor."""

from typing import TYPE_CHECKING

from xtts.shared.lazy_names import lazy_names

if TYPE_CHECKING:
    from xtts.trainer.library import train
    from xtts.trainer.speech.loaded_voice import load_voice

__all__ = ["load_voice", "train"]

__getattr__ = lazy_names(__name__, {"load_voice": "speech.loaded_voice", "train": "library"})
