"""`xtts-synth`: speech from a checkpoint, evaluation and export."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xtts.trainer.synth.library import evaluate_checkpoint, load_voice

__all__ = ["evaluate_checkpoint", "load_voice"]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - each name has its own type, given above
    """The library interface, loaded when a name is first used: `--help` stays light."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from xtts.trainer.synth import library

    return getattr(library, name)
