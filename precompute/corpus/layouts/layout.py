"""Definition of a corpus layout, and the checked constructors of clips and segments that all layouts use."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf
from pathlib import Path

from xtts.precompute.corpus.clip_fields import check_language, check_name, encodable
from xtts.precompute.corpus.corpus_files import nfc
from xtts.precompute.corpus.text_doubts import read_marks, text_doubt
from xtts.shared.audio.decode import Segment
from xtts.shared.cache.clip_index import Clip
from xtts.shared.errors import LockstepError

_SHOWN = 40
"""Largest number of letters to quote from a doubtful text."""
_INVISIBLE = "\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
"""Marks around a name that make no other person."""
MOST_SECONDS = 1e6
"""Limit of times in a recording: twelve days."""


@dataclass(frozen=True)
class Layout:
    """A layout of a corpus on disk."""

    name: str
    """Value of `--layout`."""
    expected: str
    """Description of the expected contents, for the message that a corpus has no clips."""
    matches: Callable[[Path], bool]
    """Whether a folder, or a file that lists clips, has this layout; raises a `LockstepError` if ambiguous."""
    read: Callable[[Path], Iterator[Clip]]
    """Yields the clips in a fixed order, with sources relative to `folder_of(data)`.

    Raises a `LockstepError` if a line, a file or the corpus cannot be used."""
    skipped: Callable[[Path], list[str]] = lambda _: []
    """Returns lines to print about what is not read."""
    speaker_folders: bool = False
    """Whether folders are the speakers unless a clip names one."""
    has_list: bool = True
    """Whether recordings may be missing from what lists the clips."""


def folder_of(data: Path) -> Path:
    """Return the folder of a corpus: `data`, or the parent of the file that lists the clips."""
    return data.parent if data.is_file() else data


def checked_clip(
    clip_id: str, text: str, source: str, *, location: str, speaker: str = "", normalised: bool = False,
    language: str = "", segment: Segment | None = None,
) -> Clip:
    """Return a clip, with a doubt if its text is damaged.

    Raises a `LockstepError` if its id or speaker is not a plain name or its language is unknown.
    """
    clip_id, speaker = nfc(clip_id), nfc(speaker).strip(_INVISIBLE)
    check_name(clip_id, what="clip id", location=location)
    if speaker:
        check_name(speaker, what="speaker", location=location)
    if "\0" in source or not encodable(source + text):
        raise LockstepError(location, found="characters that are not text", expected="plain UTF-8")
    text, doubt = read_marks(text), ""
    if found := text_doubt(text):
        doubt = f"{found[0]}: {found[1][:_SHOWN]!r} in {Path(location).name}"
    return Clip(
        id=clip_id, speaker=speaker, text=text, doubt=doubt, source=source, normalised=normalised,
        language=check_language(language, location),
        start=segment.start if segment else None, duration=segment.duration if segment else None,
    )


def checked_segment(start: float, duration: float, location: str) -> Segment:
    """Return a segment, in seconds, of an infinite duration up to the end of its recording.

    Raises a `LockstepError` if its times are impossible.
    """
    if not (0 <= start < MOST_SECONDS and (0 < duration < MOST_SECONDS or duration == inf)):  # true for NaN, too
        problem = f"a segment of {duration:g} s starting at {start:g} s"
        raise LockstepError(location, found=problem, expected="a start from 0 and a duration above 0")
    return Segment(start, duration)


def segment_name(recording: str, segment: Segment | None) -> str:
    """Derive a clip's id from its recording's: `ID_START-END`, in milliseconds, for a segment, else the same.

    A segment up to the end of its recording is `ID_START-`.
    """
    if segment is None:
        return recording
    end = "" if segment.duration == inf else round(1000 * (segment.start + segment.duration))
    return f"{recording}_{round(1000 * segment.start)}-{end}"
