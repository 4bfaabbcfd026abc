"""Writing so that a crash or a power cut leaves the old file or the new one, never a part."""

import os
from pathlib import Path


def sync_file(path: Path) -> None:
    """Wait until the bytes of a file are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def move(source: Path, target: Path) -> None:
    """Put a synced file in its place, durably."""
    target.parent.mkdir(parents=True, exist_ok=True)
    os.replace(source, target)
    sync_file(target.parent)


def write(path: Path, data: bytes) -> None:
    """Write a whole small file beside its place, sync it and rename it."""
    beside = path.with_name(path.name + ".part")
    beside.write_bytes(data)
    sync_file(beside)
    move(beside, path)
