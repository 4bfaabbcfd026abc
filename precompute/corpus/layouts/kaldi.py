"""Kaldi's data folders: `wav.scp`, `text` and, where speakers are named, `utt2spk`."""

from pathlib import Path

from xtts.precompute.corpus.corpus_files import source_of
from xtts.precompute.corpus.layouts.layout import ClipList
from xtts.precompute.corpus.text_lines import filled_lines
from xtts.shared.cache.clip_index import Clip
from xtts.shared.errors import LockstepError

_AUDIO, _TEXTS, _SPEAKERS, _SEGMENTS = "wav.scp", "text", "utt2spk", "segments"


class Kaldi:
    """A line of each file is an utterance's id and, after a space, its audio file, words or speaker."""

    name = "kaldi"

    def matches(self, data: Path) -> bool:
        """A folder with `wav.scp`."""
        return (data / _AUDIO).exists()

    def read(self, data: Path, limit: int | None) -> list[Clip]:
        """The clips in the order of `wav.scp`, then texts without audio; paths there are relative to the folder.

        Nothing is executed: a line that ends in a pipe is refused, and so is a corpus with `segments`. Where every
        speaker is called like the utterance, as Kaldi wants it of corpora without speakers, there are none.
        """
        if (data / _SEGMENTS).exists():
            fix = "cut the recordings into a file for each utterance (extract-segments)"
            raise LockstepError(str(data / _SEGMENTS), found="segments of longer recordings", fix=fix)
        audio = [(where, *_split(line)) for where, line in filled_lines(data / _AUDIO)]
        texts = _table(data / _TEXTS)
        speakers = _table(data / _SPEAKERS) if (data / _SPEAKERS).exists() else {}
        if all(clip_id == speaker for clip_id, (_, speaker) in speakers.items()):
            speakers = {}
        listed, clips = {clip_id for _, clip_id, _ in audio}, ClipList(limit)
        missing = [(where, clip_id, f"{clip_id}.wav") for clip_id, (where, _) in texts.items() if clip_id not in listed]
        for where, clip_id, file in audio + missing:
            if clips.is_full:
                break
            if file.endswith("|"):
                fix = "run it once, and write the path of what it makes"
                raise LockstepError(
                    where, found=f"a command {file[:60]!r}", expected="the path of an audio file", fix=fix
                )
            said, speaker = texts.get(clip_id, ("", ""))[1], speakers.get(clip_id, ("", ""))[1]
            clips.add(clip_id, said, source_of(data, file, ("",), where), where=where, speaker=speaker)
        return clips.checked(data / _AUDIO, "lines of an id and the path of an audio file")


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
