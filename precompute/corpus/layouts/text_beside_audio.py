"""Corpora without a list, whose texts lie beside their audio: LibriTTS, LibriTTS-R, and plain folders."""

import os
from dataclasses import dataclass
from pathlib import Path

from xtts.precompute.corpus.corpus_files import SUFFIXES, audio_by_name, clip_ids, files_below
from xtts.precompute.corpus.layouts.layout import ClipList
from xtts.precompute.corpus.text_lines import read_text
from xtts.shared.cache.clip_index import Clip


@dataclass(frozen=True)
class TextBesideAudio:
    """`ID.wav` with a text of the same name, at any depth; other files may lie there."""

    name: str
    text_suffix: str
    by_speaker: bool
    """The folders are SPEAKER/CHAPTER/ID.wav, and texts are in words."""

    def matches(self, data: Path) -> bool:
        """A folder with audio that has such a text beside it."""
        if not data.is_dir():
            return False
        paths = files_below(data)
        return not audio_by_name(paths).keys().isdisjoint(self._texts(paths))

    def read(self, data: Path, limit: int | None) -> list[Clip]:
        """The clips in the order of their paths.

        Audio without text is a clip with an empty text, text without audio one whose audio is missing: the index
        rejects both.
        """
        paths = files_below(data)
        audio, texts = audio_by_name(paths), self._texts(paths)
        names = sorted(audio.keys() | texts)
        ids, clips = clip_ids(names), ClipList(limit)
        for name in names:
            if clips.is_full:
                break
            path = data / f"{name}{self.text_suffix}"
            clips.add(
                ids[name], read_text(path) if name in texts else "", audio.get(name, name + SUFFIXES[0]),
                where=str(path), speaker=_speaker(path) if self.by_speaker else "", normalised=self.by_speaker,
            )  # fmt: skip
        return clips.checked(data, f"ID.wav with ID{self.text_suffix} beside it")

    def _texts(self, paths: list[str]) -> set[str]:
        return {path.removesuffix(self.text_suffix) for path in paths if path.endswith(self.text_suffix)}


def _speaker(path: Path) -> str:
    """The folder above the chapter's, also where `--data` is the speaker's own."""
    parts = Path(os.path.abspath(path)).parts
    return parts[-3] if len(parts) > 3 else ""


LIBRITTS = TextBesideAudio("libritts", ".normalized.txt", by_speaker=True)
PLAIN_FOLDER = TextBesideAudio("folder", ".txt", by_speaker=False)
