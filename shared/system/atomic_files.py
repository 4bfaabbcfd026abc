"""Writing so that a crash or a power cut leaves the old file or the new one, never a part."""

import os
from collections.abc import Iterable
from itertools import takewhile
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
    move_all([(source, target)])


def move_all(places: Iterable[tuple[Path, Path]]) -> None:
    """Put synced files in their places, durably together: every folder is synced once, after the last."""
    folders = dict[Path, None]()
    for source, target in places:
        new = list(takewhile(lambda folder: not folder.exists(), target.parents))
        if new:
            target.parent.mkdir(parents=True, exist_ok=True)
        os.replace(source, target)
        folders |= dict.fromkeys((target.parent, *(folder.parent for folder in new)))
    for folder in folders:
        sync_file(folder)


def write(path: Path, data: bytes) -> None:
    """Write a whole small file beside its place, sync it and rename it; an OSError leaves nothing beside it."""
    beside = path.with_name(path.name + ".part")
    try:
        beside.write_bytes(data)
        sync_file(beside)
        move(beside, path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
