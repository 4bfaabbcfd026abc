"""Saying what changed since the last build, and what will be done about it."""

from collections.abc import Iterable, Mapping
from typing import Any

from xtts.precompute.scan import same_file
from xtts.shared.index import IndexRow

_CONSEQUENCES = {
    "audio": "all mels are computed anew",
    "text": "all texts are tokenised anew, the mels are taken from the cache",
    "shapes": "the mels are taken from the cache and padded anew",
    "shards": "the shards are divided anew",
    "split": "the clips are divided anew",
}


def setting_changes(old: Mapping[str, Mapping[str, Any]], new: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """One line for each setting with another value."""
    lines = []
    for section, values in new.items():
        before = old.get(section, {})
        for key in sorted({*before, *values}):
            if before.get(key) != values.get(key):
                change = f"{before.get(key)} -> {values.get(key)}"
                lines.append(f"{section}.{key}: {change}: {_CONSEQUENCES[section]}")
    return lines


def corpus_changes(old: Iterable[IndexRow], new: Iterable[IndexRow]) -> list[str]:
    """How many clips were added, removed, recorded or transcribed anew, with an example each."""
    before = {row.id: row for row in old if row.reason != "duplicate id"}
    after = {row.id: row for row in new if row.reason != "duplicate id"}
    kept = [(before[name], row) for name, row in after.items() if name in before]
    groups = {
        "added": [name for name in after if name not in before],
        "removed": [name for name in before if name not in after],
        "with other audio": [row.id for was, row in kept if not same_file(row, was)],
        "with another transcript": [row.id for was, row in kept if row.text_sha256 != was.text_sha256],
        "with another speaker": [row.id for was, row in kept if row.speaker != was.speaker],
    }
    return [
        f"{len(names)} {'clip' if len(names) == 1 else 'clips'} {what} ({names[0]}{', ...' if names[1:] else ''})"
        for what, names in groups.items()
        if names
    ]


def work_ahead(*, ready: int, missing: int, clips: int, stored: int) -> list[str]:
    """What the build will do."""
    if not missing:
        return [f"{ready} shards are finished, none is written"]
    sources = f"{clips} clips, {clips - stored} of them from audio and {stored} from stored mels"
    return [f"{missing} shards are written ({sources}), {ready} are kept"]
