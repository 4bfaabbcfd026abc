"""Stage 2: a cache to a trained model; synthesis and the doctor."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xtts.trainer.library import train

__all__ = ["train"]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - each name has its own type, given above
    """The library interface, loaded when a name is first used: `--help` stays light."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from xtts.trainer import library

    return getattr(library, name)
