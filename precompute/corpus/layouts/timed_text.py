"""Text files beside recordings: one text for all of it, or texts with times, as in Audacity's labels and subtitles."""

import re
from pathlib import Path
from typing import NamedTuple

from xtts.precompute.corpus.layouts.layout import checked_segment
from xtts.precompute.corpus.text_lines import filled_lines
from xtts.shared.audio.decode import Segment
from xtts.shared.errors import LockstepError

SUBTITLES = ".srt"
_LABEL = re.compile(r"(\d+(?:[.,]\d+)?)\t(\d+(?:[.,]\d+)?)(?:\t(.*))?")
_LABEL_OF_FREQUENCIES = "\\"
_TIME = r"(\d+):(\d\d):(\d\d)[,.](\d{3})"
_TIMES = re.compile(rf"\s*{_TIME}\s*-->\s*{_TIME}")
_MARKUP = re.compile(r"</?[a-z][^>]*>|\{\\[^}]*\}", re.IGNORECASE)


class TimedText(NamedTuple):
    """The text of a recording, or of a segment of it."""

    location: str
    text: str
    segment: Segment | None = None


def texts_in(path: Path) -> list[TimedText]:
    """Return the texts of a file: one for each segment with times, else its lines joined by spaces.

    Raises a `LockstepError` for a subtitle file without times, or a line without times among labels.
    """
    lines = list(filled_lines(path))
    if path.name.endswith(SUBTITLES):
        return _subtitles(path, lines)
    if any(_LABEL.fullmatch(line) for _, line in lines):
        return [_label(location, line) for location, line in lines if not line.startswith(_LABEL_OF_FREQUENCIES)]
    return [TimedText(str(path), " ".join(line.strip() for _, line in lines))]


def _label(location: str, line: str) -> TimedText:
    match = _LABEL.fullmatch(line)
    if match is None:
        expected = "start, end and text with tabs between them, as in the other lines"
        raise LockstepError(location, found=f"{line[:60]!r}", expected=expected)
    start, end = (float(seconds.replace(",", ".")) for seconds in match.group(1, 2))
    return TimedText(location, (match[3] or "").strip(), checked_segment(start, end - start, location))


def _subtitles(path: Path, lines: list[tuple[str, str]]) -> list[TimedText]:
    """Read subtitles: each is a number, a line of times, and lines of text."""
    texts = list[TimedText]()
    for (location, line), (_, following) in zip(lines, [*lines[1:], ("", "")], strict=True):
        if times := _TIMES.match(line):
            numbers = list(map(int, times.groups()))
            start, end = (3600 * h + 60 * m + s + ms / 1000 for h, m, s, ms in (numbers[:4], numbers[4:]))
            texts.append(TimedText(location, "", checked_segment(start, end - start, location)))
        elif texts and not (line.strip().isdecimal() and _TIMES.match(following)):
            texts[-1] = texts[-1]._replace(text=f"{texts[-1].text} {_MARKUP.sub('', line).strip()}".strip())
    if not texts:
        raise LockstepError(str(path), found="no times", expected="lines as 00:00:01,500 --> 00:00:04,000")
    return texts
