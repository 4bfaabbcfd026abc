"""Kaldi's data folders: `wav.scp`, `text` and optionally `segments` and `utt2spk`."""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from xtts.precompute.corpus.corpus_files import source_of
from xtts.precompute.corpus.layouts.layout import Layout, checked_clip, checked_segment
from xtts.precompute.corpus.text_lines import filled_lines
from xtts.shared.audio.decode import Segment
from xtts.shared.cache.clip_index import Clip
from xtts.shared.errors import LockstepError

_AUDIO, _TEXTS, _SPEAKERS, _SEGMENTS = "wav.scp", "text", "utt2spk", "segments"


def _read(data: Path) -> Iterator[Clip]:
    """Yield the utterances in the order of `segments`, else of `wav.scp`, then texts without audio.

    A line has an utterance's id and, after a space, its audio file, words or speaker. Paths are relative to the folder.
    Nothing is executed: a line that ends in a pipe is rejected. If every speaker is called like the utterance, Kaldi's
    convention for corpora without speakers, there are none.
    """
    texts = _table(data / _TEXTS)
    speakers = _table(data / _SPEAKERS) if (data / _SPEAKERS).exists() else {}
    if all(clip_id == speaker for clip_id, (_, speaker) in speakers.items()):
        speakers = {}
    utterances = _utterances(data)
    listed = {utterance.id for utterance in utterances}
    missing = [_Utterance(name, line, f"{name}.wav") for name, (line, _) in texts.items() if name not in listed]
    for clip_id, location, file, segment in utterances + missing:
        yield checked_clip(
            clip_id, texts.get(clip_id, ("", ""))[1], source_of(data, file, ("",), location), location=location,
            speaker=speakers.get(clip_id, ("", ""))[1], segment=segment,
        )


KALDI = Layout("kaldi", "lines of an id and the path of an audio file", lambda data: (data / _AUDIO).exists(), _read)


class _Utterance(NamedTuple):
    id: str
    location: str
    """The line that lists it."""
    file: str
    segment: Segment | None = None


def _utterances(data: Path) -> list[_Utterance]:
    recordings = list[_Utterance]()
    for location, line in filled_lines(data / _AUDIO):
        name, file = _split(line)
        if file.endswith("|"):
            expected, fix = "the path of an audio file", "run it once, and write the path of its output"
            raise LockstepError(location, found=f"a command {file[:60]!r}", expected=expected, fix=fix)
        recordings.append(_Utterance(name, location, file))
    if not (data / _SEGMENTS).exists():
        return recordings
    files = {recording.id: recording.file for recording in recordings}
    return [_cut(location, *_split(line), files) for location, line in filled_lines(data / _SEGMENTS)]


def _cut(location: str, utterance: str, line: str, files: Mapping[str, str]) -> _Utterance:
    """Parse a line of `segments` after its id: recording, start and end in seconds (-1: its end), channel 0."""
    recording, _, times = line.replace("\t", " ").partition(" ")
    numbers = times.split()
    try:
        start, end = map(float, numbers[:2])
    except ValueError:
        start, end = math.nan, math.nan
    end = math.inf if end == -1 else end
    if not (end > start and numbers[2:] in ([], ["0"])):
        expected = "the id of a recording, start and end in seconds"
        raise LockstepError(location, found=f"{line[:60]!r}", expected=expected)
    if recording not in files:
        raise LockstepError(location, found=f"recording {recording[:60]!r}", expected=f"one of those in {_AUDIO}")
    return _Utterance(utterance, location, files[recording], checked_segment(start, end - start, location))


def _split(line: str) -> tuple[str, str]:
    """Return a line's id and the text after it."""
    clip_id, _, value = line.strip().replace("\t", " ").partition(" ")  # other spaces occur in names
    return clip_id, value.strip()


def _table(path: Path) -> dict[str, tuple[str, str]]:
    """Map id to (location, value); raise a `LockstepError` if an id comes twice."""
    table: dict[str, tuple[str, str]] = {}
    for location, line in filled_lines(path):
        clip_id, value = _split(line)
        if clip_id in table:
            raise LockstepError(location, found=f"id {clip_id[:60]!r} again", expected="one line for each id")
        table[clip_id] = location, value
    return table
