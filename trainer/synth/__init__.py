"""`xtts-synth`: speech from a checkpoint, evaluation and export."""

from typing import TYPE_CHECKING

from xtts.shared.lazy_names import lazy_names

if TYPE_CHECKING:
    from xtts.trainer.synth.library import evaluate_checkpoint, load_voice

__all__ = ["evaluate_checkpoint", "load_voice"]

__getattr__ = lazy_names(__name__, __all__)
