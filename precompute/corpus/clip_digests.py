"""Digests of clip ids and texts: they decide the places of clips in a cache, and find earlier builds' rows."""

import hashlib
from collections.abc import Iterable, Sequence

import numpy as np


def clip_digest(seed: int, clip_id: str) -> bytes:
    """32 bytes that decide a clip's shard, the second 8, and its place there, all."""
    return hashlib.sha256(f"{seed}:{clip_id}".encode()).digest()


def digest_columns(seed: int, ids: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """The first 8 bytes of the digests of these clips, and the next 8: uint64[N] each."""
    joined = b"".join(clip_digest(seed, clip_id)[:16] for clip_id in ids)
    pairs = np.frombuffer(joined, ">u8").reshape(-1, 2)
    return pairs[:, 0].astype(np.uint64), pairs[:, 1].astype(np.uint64)


def text_digests(texts: Iterable[tuple[object, str]]) -> np.ndarray:
    """uint64[N]: of (salt, text) each. The salt is a language, to tell known texts from new ones, or a seed."""
    joined = b"".join(hashlib.sha256(f"{salt}:{text}".encode()).digest()[:8] for salt, text in texts)
    return np.frombuffer(joined, np.uint64)
