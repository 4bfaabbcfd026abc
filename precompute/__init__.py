"""Stage 1: a corpus of recordings and texts to a cache of fixed-shape TFRecord shards."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xtts.precompute.library import build_cache, verify_cache

__all__ = ["build_cache", "verify_cache"]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - each name has its own type, given above
    """The library interface, loaded when a name is first used: `--help` stays light."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from xtts.precompute import library

    return getattr(library, name)
