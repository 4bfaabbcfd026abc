"""Corpora with a text file for each audio file instead of a list: VCTK, LibriTTS, LibriTTS-R, and plain folders.

A file has one text for all of its recording, or texts with times, as in Audacity's labels and subtitles.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path, PurePosixPath

from xtts.precompute.corpus.corpus_files import SUFFIXES, audio_by_name, clip_ids, files_below, nfc
from xtts.precompute.corpus.layouts.layout import Layout, checked_clip, checked_segment, segment_name
from xtts.precompute.corpus.text_lines import filled_lines
from xtts.shared.audio.decode import Segment
from xtts.shared.cache.clip_index import Clip
from xtts.shared.errors import LockstepError, counted_noun

_AUDIO_FOLDERS, _TEXT_FOLDER = ("wav48_silence_trimmed", "wav48"), "txt"
_MICROPHONE, _OTHER_MICROPHONE = "_mic1", "_mic2"
_SUBTITLES = ".srt"
_LABEL = re.compile(r"(\d+(?:[.,]\d+)?)\t(\d+(?:[.,]\d+)?)(?:\t(.*))?")
_LABEL_OF_FREQUENCIES = "\\"
_TIME = r"(\d+):(\d\d):(\d\d)[,.](\d{3})"
_TIMES = re.compile(rf"\s*{_TIME}\s*-->\s*{_TIME}")
_MARKUP = re.compile(r"</?[a-z][^>]*>|\{\\[^}]*\}", re.IGNORECASE)
_NO_SPEECH = re.compile(r"^[^\w]*[♪♫].*[♪♫][^\w]*$|\[[^\[\]]*\]|[♩♪♫♬*#\s]")
"""Parts of a text without speech: `[Music]`, notes, a song between notes."""
_CLOCK = re.compile(r"(?:\d{1,2}:)?\d{1,2}:\d\d")
"""The first line of a transcript copied from a video's page."""


def _layout(name: str, expected: str, suffixes: tuple[str, ...], *, by_speaker: bool) -> Layout:
    """Return the layout of `ID.wav` with a text file of the same name, at any depth, among other files.

    suffixes: of texts in the order of preference. by_speaker: the paths are SPEAKER/CHAPTER/ID.wav, and texts are
    normalised.
    """
    matches, read = partial(_has_pair, suffixes), partial(_read, suffixes, by_speaker=by_speaker)
    skipped = partial(_skipped, suffixes)
    return Layout(name, expected, matches, read, skipped, speaker_folders=not by_speaker)


def _has_pair(suffixes: tuple[str, ...], data: Path) -> bool:
    """Whether it is a folder with an audio file and its text."""
    if not data.is_dir():
        return False
    paths = files_below(data)
    return not audio_by_name(paths).keys().isdisjoint(_texts(paths, suffixes))


def _read(suffixes: tuple[str, ...], data: Path, *, by_speaker: bool) -> Iterator[Clip]:
    """Yield the clips in the order of their paths, those of a file with times in its order.

    Audio without text is a clip with an empty text, text without audio a clip whose audio is missing: the index rejects
    both.
    """
    paths = files_below(data)
    yield from _clips(
        data, audio_by_name(paths), _texts(paths, suffixes), f"{{}}{SUFFIXES[0]}", _speaker if by_speaker else None,
        normalised=by_speaker,
    )


def _skipped(suffixes: tuple[str, ...], data: Path) -> list[str]:
    """Return a line about the skipped segments of texts with times, with the first."""
    paths = _texts(files_below(data), suffixes).values() if _SUBTITLES in suffixes else ()
    skipped = [text for path in paths for text in _texts_in(data / path)[1]]
    problem = "skipped, without speech or of 0 s, such as"
    return [f"{data}: {counted_noun(len(skipped), 'segment')} {problem} {skipped[0][:60]!r}"] if skipped else []


def _speaker(data: Path, name: str) -> str:
    """Return the name of the folder above the chapter's, even if `--data` is that folder."""
    parts = Path(os.path.abspath(data / name)).parts
    return parts[-3] if len(parts) > 3 else ""


LIBRITTS = _layout("libritts", "ID.wav with ID.normalized.txt beside it", (".normalized.txt",), by_speaker=True)
PLAIN_FOLDER = _layout("folder", "ID.wav with ID.txt beside it", (".txt", _SUBTITLES), by_speaker=False)


def _is_vctk(data: Path) -> bool:
    """Whether it is a folder with one of texts and one of audio."""
    return (data / _TEXT_FOLDER).is_dir() and any((data / folder).is_dir() for folder in _AUDIO_FOLDERS)


def _read_vctk(data: Path) -> Iterator[Clip]:
    """Yield the clips in the order of speaker and name; audio or text may be missing, as in `_read`.

    They are `wav48_silence_trimmed/p225/p225_001_mic1.flac` (or `wav48/p225/p225_001.wav`), `txt/p225/p225_001.txt`.
    Only the first of two microphones is read.
    """
    folder = next((name for name in _AUDIO_FOLDERS if (data / name).is_dir()), _AUDIO_FOLDERS[0])
    audio = {
        name.removesuffix(_MICROPHONE): f"{folder}/{path}"
        for name, path in audio_by_name(files_below(data, folder)).items()
        if not name.endswith(_OTHER_MICROPHONE)
    }
    below = _texts(files_below(data, _TEXT_FOLDER), (".txt",))
    texts = {name: f"{_TEXT_FOLDER}/{path}" for name, path in below.items()}
    missing = f"{folder}/{{}}{_MICROPHONE}.flac"
    yield from _clips(data, audio, texts, missing, lambda _, name: PurePosixPath(name).parent.name)


VCTK = Layout(
    "vctk", "wav48/SPEAKER/ID_mic1.flac and txt/SPEAKER/ID.txt", _is_vctk, _read_vctk, has_list=False
)


def _texts(paths: list[str], suffixes: tuple[str, ...]) -> dict[str, str]:
    """Map `nfc` path without suffix, in either case, to path; a clip with several has the first of `suffixes`."""
    return {
        nfc(path[: -len(suffix)]): path
        for suffix in reversed(suffixes) for path in paths if path.lower().endswith(suffix)
    }


def _clips(
    data: Path, audio: Mapping[str, str], texts: Mapping[str, str], missing_audio: str,
    speaker_of: Callable[[Path, str], str] | None = None, *, normalised: bool = False,
) -> Iterator[Clip]:
    """Yield the clips in the order of their names: one for each recording or text, or for each segment of a text.

    audio, texts: paths by name. missing_audio: the path of missing audio, with `{}` for the name.
    """
    names = sorted(audio.keys() | texts)
    ids = clip_ids(names)
    for name in names:
        source, path = audio.get(name, missing_audio.format(name)), data / texts.get(name, name)
        speaker = speaker_of(data, name) if speaker_of else ""
        for location, text, segment in _texts_in(path)[0] if name in texts else [(str(data / source), "", None)]:
            yield checked_clip(
                segment_name(ids[name], segment), text, source, location=location, segment=segment,
                normalised=normalised, speaker=speaker,
            )


_TimedText = tuple[str, float, float, str]
"""(location, start, end, text) of a segment, in seconds."""


def _texts_in(path: Path) -> tuple[list[tuple[str, str, Segment | None]], list[str]]:
    """Return (location, text, segment) of each segment with times, and the texts of the skipped ones.

    A file without times is one text, its lines joined by spaces. Segments without speech, or of no length as Whisper
    makes them, are skipped. Raises a `LockstepError` for a subtitle file without times, a line without times
    among labels, or a transcript with clock times.
    """
    lines = list(filled_lines(path))
    if path.name.lower().endswith(_SUBTITLES):
        segments = _subtitles(path, lines)
    elif any(_LABEL.fullmatch(line) for _, line in lines):
        segments = [_label(location, line) for location, line in lines if not line.startswith(_LABEL_OF_FREQUENCIES)]
    elif len(lines) > 1 and _CLOCK.fullmatch(lines[0][1].strip()):
        raise LockstepError(
            lines[0][0], found="a transcript with clock times", expected="subtitles (.srt) or Audacity's labels"
        )
    else:
        return [(str(path), " ".join(line.strip() for _, line in lines), None)], []
    texts, passed = list[tuple[str, str, Segment | None]](), list[str]()
    for location, start, end, text in segments:
        if start == end or not _NO_SPEECH.sub("", text):
            passed.append(text)
        else:
            texts.append((location, text, checked_segment(start, end - start, location)))
    return texts, passed


def _label(location: str, line: str) -> _TimedText:
    match = _LABEL.fullmatch(line)
    if match is None:
        expected = "start, end and text with tabs between them, as in the other lines"
        raise LockstepError(location, found=f"{line[:60]!r}", expected=expected)
    start, end = (float(seconds.replace(",", ".")) for seconds in match.group(1, 2))
    return location, start, end, (match[3] or "").strip()


def _subtitles(path: Path, lines: list[tuple[str, str]]) -> list[_TimedText]:
    """Read subtitles: each is a number, a line of times, and lines of text."""
    segments = list[_TimedText]()
    for (location, line), (_, following) in zip(lines, [*lines[1:], ("", "")], strict=True):
        if times := _TIMES.match(line):
            numbers = list(map(int, times.groups()))
            start, end = (3600 * h + 60 * m + s + ms / 1000 for h, m, s, ms in (numbers[:4], numbers[4:]))
            segments.append((location, start, end, ""))
        elif segments and not (line.strip().isdecimal() and _TIMES.match(following)):
            segments[-1] = _continued(segments[-1], _MARKUP.sub("", line))
    if not segments:
        raise LockstepError(str(path), found="no times", expected="lines such as 00:00:01,500 --> 00:00:04,000")
    return segments


def _continued(segment: _TimedText, line: str) -> _TimedText:
    """Return a segment with another line of its text."""
    location, start, end, text = segment
    return location, start, end, f"{text} {line.strip()}".strip()
