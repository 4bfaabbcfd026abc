"""What a layout of a corpus is, and how each of them makes its clips."""

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from xtts.precompute.corpus.clip_fields import check_language, check_name, encodable
from xtts.precompute.corpus.corpus_files import nfc
from xtts.shared.audio.decode import Segment
from xtts.shared.cache.clip_index import Clip
from xtts.shared.errors import LockstepError

MOST_SECONDS = 1e6
"""Twelve days: no recording is longer."""


class Layout(Protocol):
    """How a corpus lies on the disk."""

    @property
    def name(self) -> str:
        """What `--layout` calls it."""

    @property
    def expected(self) -> str:
        """What a corpus without clips lacks."""

    def matches(self, data: Path) -> bool:
        """Whether a folder, or a file that lists clips, looks like it; a `LockstepError` where that has two answers."""

    def read(self, data: Path) -> Iterator[Clip]:
        """The clips one by one in a fixed order; sources are relative to `folder_of(data)`.

        A `LockstepError` where a line, a file or the whole corpus cannot be used.
        """


def folder_of(data: Path) -> Path:
    """The corpus' folder: `data`, or where the file lies that lists its clips."""
    return data.parent if data.is_file() else data


def checked_clip(
    clip_id: str, text: str, source: str, *, where: str, speaker: str = "", normalised: bool = False,
    language: str = "", segment: Segment | None = None,
) -> Clip:  # fmt: skip
    """A clip; a `LockstepError` where its id, speaker or language is no plain name."""
    clip_id, speaker = nfc(clip_id), nfc(speaker)
    check_name(clip_id, what="clip id", where=where)
    if speaker:
        check_name(speaker, what="speaker", where=where)
    if "\0" in source or not encodable(source + text):
        raise LockstepError(where, found="characters that are no text", expected="plain UTF-8")
    return Clip(
        id=clip_id, speaker=speaker, text=text, source=source, normalised=normalised,
        language=check_language(language, where),
        start=segment.start if segment else None, duration=segment.duration if segment else None,
    )  # fmt: skip


def checked_segment(start: float, duration: float, where: str) -> Segment:
    """A segment of so many seconds; a `LockstepError` where that cannot be."""
    if not (0 <= start < MOST_SECONDS and 0 < duration < MOST_SECONDS):  # also not a number
        found = f"a segment of {duration:g} s from {start:g} s on"
        raise LockstepError(where, found=found, expected="a start from 0 and a duration above 0")
    return Segment(start, duration)


def segment_name(recording: str, segment: Segment | None) -> str:
    """What a segment without an id is called: `FILE_START-END`, in milliseconds; as the file where it is all of it."""
    if segment is None:
        return recording
    return f"{recording}_{round(1000 * segment.start)}-{round(1000 * (segment.start + segment.duration))}"
