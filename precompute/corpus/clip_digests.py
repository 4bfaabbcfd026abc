"""Digests of clip ids, which decide the places of clips in a cache, and by which earlier builds' rows are found."""

import hashlib
from collections.abc import Sequence

import numpy as np


def clip_digest(seed: int, clip_id: str) -> bytes:
    """32 bytes that decide everything about a clip's place: 8 for the split, 8 for the shard, all for the order."""
    return hashlib.sha256(f"{seed}:{clip_id}".encode()).digest()


def digest_columns(seed: int, ids: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """The first 8 bytes of the digests of these clips, and the next 8: uint64[N] each."""
    joined = b"".join(clip_digest(seed, clip_id)[:16] for clip_id in ids)
    pairs = np.frombuffer(joined, ">u8").reshape(-1, 2)
    return pairs[:, 0].astype(np.uint64), pairs[:, 1].astype(np.uint64)


def text_digests(texts: Sequence[tuple[str, str]]) -> np.ndarray:
    """uint64[N]: of (language, text) each, to tell known texts from new ones."""
    joined = b"".join(hashlib.sha256(f"{code}:{text}".encode()).digest()[:8] for code, text in texts)
    return np.frombuffer(joined, np.uint64)
