"""Atomic writes: a crash or a power cut leaves the old file or the new one, never a fragment."""

import os
from itertools import takewhile
from pathlib import Path


def sync_file(path: Path) -> None:
    """Wait until a file's bytes are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def move(*moves: tuple[Path, Path]) -> None:
    """Move synced files to their final paths, durably: every folder is synced once, after the last move."""
    folders = dict[Path, None]()
    for source, target in moves:
        new = list(takewhile(lambda folder: not folder.exists(), target.parents))
        if new:
            target.parent.mkdir(parents=True, exist_ok=True)
        os.replace(source, target)
        folders |= dict.fromkeys((target.parent, *(folder.parent for folder in new)))
    for folder in folders:
        sync_file(folder)


def write(path: Path, data: bytes) -> None:
    """Write a small file atomically: to a temporary file, synced and renamed, or removed on an OSError."""
    temp = path.with_name(path.name + ".part")
    try:
        temp.write_bytes(data)
        sync_file(temp)
        move((temp, path))
    except OSError:
        temp.unlink(missing_ok=True)
        raise
