"""What a layout of a corpus is, and the list of clips that each of them fills."""

from pathlib import Path
from typing import Protocol

from xtts.precompute.corpus.plain_names import check_language, check_name, encodable
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

    def matches(self, data: Path) -> bool:
        """Whether a folder, or a file that lists clips, looks like it; a `LockstepError` where that has two answers."""

    def read(self, data: Path, limit: int | None) -> list[Clip]:
        """The clips in a fixed order, at most the first `limit`; sources are relative to `folder_of(data)`.

        Raises:
            LockstepError: A line, a file or the whole corpus cannot be used.
        """


def folder_of(data: Path) -> Path:
    """The corpus' folder: `data`, or where the file lies that lists its clips."""
    return data.parent if data.is_file() else data


class ClipList:
    """Clips in their order, each with whether one before has its id."""

    def __init__(self, limit: int | None) -> None:
        self.clips = list[Clip]()
        self._seen, self._limit = set[str](), limit

    @property
    def is_full(self) -> bool:
        """Whether it holds as many clips as were asked for."""
        return self._limit is not None and len(self.clips) >= self._limit

    def add(
        self, clip_id: str, text: str, source: str, *, where: str, speaker: str = "", normalised: bool = False,
        language: str = "", segment: Segment | None = None,
    ) -> None:  # fmt: skip
        """Append a clip; a `LockstepError` where its id, speaker or language is no plain name."""
        check_name(clip_id, what="clip id", where=where)
        if speaker:
            check_name(speaker, what="speaker", where=where)
        if "\0" in source or not encodable(source + text):
            raise LockstepError(where, found="characters that are no text", expected="plain UTF-8")
        clip = Clip(
            id=clip_id, speaker=speaker, text=text, source=source, normalised=normalised,
            duplicate=clip_id in self._seen, language=check_language(language, where),
            start=segment.start if segment else None, duration=segment.duration if segment else None,
        )  # fmt: skip
        self._seen.add(clip_id)
        self.clips.append(clip)

    def checked(self, where: Path, expected: str) -> list[Clip]:
        """The clips; a `LockstepError` when there is none."""
        if not self.clips:
            raise LockstepError(str(where), found="no clips", expected=expected)
        return self.clips


def checked_segment(start: float, duration: float, where: str) -> Segment:
    """A segment of so many seconds; a `LockstepError` where that cannot be."""
    if not (0 <= start < MOST_SECONDS and 0 < duration < MOST_SECONDS):  # also not a number
        found = f"a segment of {duration:g} s from {start:g} s on"
        raise LockstepError(where, found=found, expected="a start from 0 and a duration above 0")
    return Segment(start, duration)
