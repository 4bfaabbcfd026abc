"""Corpora without a list, with a text for each audio file: VCTK, LibriTTS, LibriTTS-R, and plain folders."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from xtts.precompute.corpus.corpus_files import SUFFIXES, audio_by_name, clip_ids, files_below
from xtts.precompute.corpus.layouts.layout import checked_clip
from xtts.precompute.corpus.text_lines import read_text
from xtts.shared.cache.clip_index import Clip

_AUDIO_FOLDERS, _TEXT_FOLDER = ("wav48_silence_trimmed", "wav48"), "txt"
_MICROPHONE, _OTHER_MICROPHONE = "_mic1", "_mic2"


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

    @property
    def expected(self) -> str:
        """Audio and texts."""
        return f"ID.wav with ID{self.text_suffix} beside it"

    def read(self, data: Path) -> Iterator[Clip]:
        """The clips in the order of their paths.

        Audio without text is a clip with an empty text, text without audio one whose audio is missing: the index
        rejects both.
        """
        paths = files_below(data)
        audio, texts = audio_by_name(paths), self._texts(paths)
        names = sorted(audio.keys() | texts)
        ids = clip_ids(names)
        for name in names:
            path = data / f"{name}{self.text_suffix}"
            yield checked_clip(
                ids[name], read_text(path) if name in texts else "", audio.get(name, name + SUFFIXES[0]),
                where=str(path), speaker=_speaker(path) if self.by_speaker else "", normalised=self.by_speaker,
            )  # fmt: skip

    def _texts(self, paths: list[str]) -> set[str]:
        return {path.removesuffix(self.text_suffix) for path in paths if path.endswith(self.text_suffix)}


def _speaker(path: Path) -> str:
    """The folder above the chapter's, also where `--data` is the speaker's own."""
    parts = Path(os.path.abspath(path)).parts
    return parts[-3] if len(parts) > 3 else ""


LIBRITTS = TextBesideAudio("libritts", ".normalized.txt", by_speaker=True)
PLAIN_FOLDER = TextBesideAudio("folder", ".txt", by_speaker=False)


class VCTK:
    """`wav48_silence_trimmed/p225/p225_001_mic1.flac` (or `wav48/p225/p225_001.wav`), `txt/p225/p225_001.txt`.

    Of two microphones the first is read.
    """

    name, expected = "vctk", "wav48/SPEAKER/ID_mic1.flac and txt/SPEAKER/ID.txt"

    def matches(self, data: Path) -> bool:
        """A folder of texts beside one of audio."""
        return (data / _TEXT_FOLDER).is_dir() and any((data / folder).is_dir() for folder in _AUDIO_FOLDERS)

    def read(self, data: Path) -> Iterator[Clip]:
        """The clips in the order of speaker and name.

        Audio or text may be missing, as in `TextBesideAudio`.
        """
        folder = next((one for one in _AUDIO_FOLDERS if (data / one).is_dir()), _AUDIO_FOLDERS[0])
        audio = {
            name.removesuffix(_MICROPHONE): f"{folder}/{path}"
            for name, path in audio_by_name(files_below(data, folder)).items()
            if not name.endswith(_OTHER_MICROPHONE)
        }
        texts = {path.removesuffix(".txt") for path in files_below(data, _TEXT_FOLDER) if path.endswith(".txt")}
        names = sorted(audio.keys() | texts)
        ids = clip_ids(names)
        for name in names:
            path = data / _TEXT_FOLDER / f"{name}.txt"
            yield checked_clip(
                ids[name], read_text(path) if name in texts else "",
                audio.get(name, f"{folder}/{name}{_MICROPHONE}.flac"),
                where=str(path), speaker=PurePosixPath(name).parent.name,
            )  # fmt: skip
