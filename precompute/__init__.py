"""Stage 1: a corpus of recordings and texts to a cache of fixed-shape TFRecord shards."""

from typing import TYPE_CHECKING

from xtts.shared.lazy_names import lazy_names

if TYPE_CHECKING:
    from xtts.precompute.library import build_cache, verify_cache

__all__ = ["build_cache", "verify_cache"]

__getattr__ = lazy_names(__name__, dict.fromkeys(__all__, "library"))
