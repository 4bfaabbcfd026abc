"""Kaldi's data folders: `wav.scp`, `text` and, where there are some, `segments` and `utt2spk`."""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from xtts.precompute.corpus.corpus_files import source_of
from xtts.precompute.corpus.layouts.layout import checked_clip, checked_segment
from xtts.precompute.corpus.text_lines import filled_lines
from xtts.shared.audio.decode import Segment
from xtts.shared.cache.clip_index import Clip
from xtts.shared.errors import LockstepError

_AUDIO, _TEXTS, _SPEAKERS, _SEGMENTS = "wav.scp", "text", "utt2spk", "segments"


class Kaldi:
    """A line of each file is an utterance's id and, after a space, its audio file, words or speaker."""

    name, expected = "kaldi", "lines of an id and the path of an audio file"

    def matches(self, data: Path) -> bool:
        """A folder with `wav.scp`."""
        return (data / _AUDIO).exists()

    def read(self, data: Path) -> Iterator[Clip]:
        """The utterances in the order of `segments`, else of `wav.scp`, then texts without audio.

        Paths are relative to the folder. Nothing is executed: a line that ends in a pipe is refused. Where every
        speaker is called like the utterance, as Kaldi wants it of corpora without speakers, there are none.
        """
        texts = _table(data / _TEXTS)
        speakers = _table(data / _SPEAKERS) if (data / _SPEAKERS).exists() else {}
        if all(clip_id == speaker for clip_id, (_, speaker) in speakers.items()):
            speakers = {}
        utterances = _utterances(data)
        listed = {one.id for one in utterances}
        missing = [_Utterance(name, where, f"{name}.wav") for name, (where, _) in texts.items() if name not in listed]
        for one in utterances + missing:
            yield checked_clip(
                one.id, texts.get(one.id, ("", ""))[1], source_of(data, one.file, ("",), one.where),
                where=one.where, speaker=speakers.get(one.id, ("", ""))[1], segment=one.segment,
            )  # fmt: skip


class _Utterance(NamedTuple):
    id: str
    where: str
    """The line that says so."""
    file: str
    segment: Segment | None = None


def _utterances(data: Path) -> list[_Utterance]:
    recordings = [_recording(where, *_split(line)) for where, line in filled_lines(data / _AUDIO)]
    if not (data / _SEGMENTS).exists():
        return recordings
    files = {recording.id: recording.file for recording in recordings}
    return [_cut(where, *_split(line), files) for where, line in filled_lines(data / _SEGMENTS)]


def _recording(where: str, name: str, file: str) -> _Utterance:
    if file.endswith("|"):
        fix = "run it once, and write the path of what it makes"
        raise LockstepError(where, found=f"a command {file[:60]!r}", expected="the path of an audio file", fix=fix)
    return _Utterance(name, where, file)


def _cut(where: str, utterance: str, rest: str, files: Mapping[str, str]) -> _Utterance:
    """The utterance of a line of `segments`: recording, start and end in seconds, channel if there are several."""
    recording, *numbers = rest.split() or [""]
    try:
        start, end = map(float, numbers[:2])
    except ValueError:
        start, end = math.nan, math.nan
    if not (end > start and numbers[2:] in ([], ["0"])):
        expected = "the id of a recording, start and end in seconds"
        raise LockstepError(where, found=f"{rest[:60]!r}", expected=expected)
    if recording not in files:
        raise LockstepError(where, found=f"recording {recording[:60]!r}", expected=f"one of those in {_AUDIO}")
    return _Utterance(utterance, where, files[recording], checked_segment(start, end - start, where))


def _split(line: str) -> tuple[str, str]:
    first, *rest = line.strip().split(maxsplit=1)
    return first, rest[0] if rest else ""


def _table(path: Path) -> dict[str, tuple[str, str]]:
    """Id to where it stands and what stands after it; a `LockstepError` where an id comes twice."""
    table: dict[str, tuple[str, str]] = {}
    for where, line in filled_lines(path):
        clip_id, rest = _split(line)
        if clip_id in table:
            raise LockstepError(where, found=f"id {clip_id[:60]!r} again", expected="one line for each id")
        table[clip_id] = where, rest
    return table
