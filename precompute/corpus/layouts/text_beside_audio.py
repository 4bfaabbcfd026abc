"""Corpora without a list, with a text for each audio file: VCTK, LibriTTS, LibriTTS-R, and plain folders."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from xtts.precompute.corpus.corpus_files import SUFFIXES, audio_by_name, clip_ids, files_below, nfc
from xtts.precompute.corpus.layouts.layout import checked_clip, segment_name
from xtts.precompute.corpus.layouts.timed_text import SUBTITLES, Said, texts_in
from xtts.shared.cache.clip_index import Clip

_AUDIO_FOLDERS, _TEXT_FOLDER = ("wav48_silence_trimmed", "wav48"), "txt"
_MICROPHONE, _OTHER_MICROPHONE = "_mic1", "_mic2"


@dataclass(frozen=True)
class TextBesideAudio:
    """`ID.wav` with a text of the same name, at any depth; other files may lie there."""

    name: str
    text_suffixes: tuple[str, ...]
    """The first is taken where a clip has several."""
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
        return f"ID.wav with ID{self.text_suffixes[0]} beside it"

    def read(self, data: Path) -> Iterator[Clip]:
        """The clips in the order of their paths, those of a file with times in its order.

        Audio without text is a clip with an empty text, text without audio one whose audio is missing: the index
        rejects both.
        """
        paths = files_below(data)
        audio, texts = audio_by_name(paths), self._texts(paths)
        names = sorted(audio.keys() | texts)
        ids = clip_ids(names)
        for name in names:
            path = data / texts.get(name, f"{name}{self.text_suffixes[0]}")
            yield from _clips(
                ids[name], audio.get(name, name + SUFFIXES[0]), path, is_there=name in texts,
                speaker=_speaker(path) if self.by_speaker else "", normalised=self.by_speaker,
            )  # fmt: skip

    def _texts(self, paths: list[str]) -> dict[str, str]:
        """`nfc` path without suffix to path."""
        return {
            nfc(path.removesuffix(suffix)): path
            for suffix in reversed(self.text_suffixes) for path in paths if path.endswith(suffix)
        }  # fmt: skip


def _speaker(path: Path) -> str:
    """The folder above the chapter's, also where `--data` is the speaker's own."""
    parts = Path(os.path.abspath(path)).parts
    return parts[-3] if len(parts) > 3 else ""


LIBRITTS = TextBesideAudio("libritts", (".normalized.txt",), by_speaker=True)
PLAIN_FOLDER = TextBesideAudio("folder", (".txt", SUBTITLES), by_speaker=False)


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
        below = [path for path in files_below(data, _TEXT_FOLDER) if path.endswith(".txt")]
        texts = {nfc(path.removesuffix(".txt")): path for path in below}
        names = sorted(audio.keys() | texts)
        ids = clip_ids(names)
        for name in names:
            path = data / _TEXT_FOLDER / texts.get(name, f"{name}.txt")
            yield from _clips(
                ids[name], audio.get(name, f"{folder}/{name}{_MICROPHONE}.flac"), path, is_there=name in texts,
                speaker=PurePosixPath(name).parent.name,
            )  # fmt: skip


def _clips(
    clip_id: str, source: str, text: Path, *, is_there: bool, speaker: str, normalised: bool = False
) -> Iterator[Clip]:
    """The clip of a recording, or of each of its segments; with an empty text where there is no file of it."""
    for where, said, segment in texts_in(text) if is_there else [Said(str(text), "")]:
        yield checked_clip(
            segment_name(clip_id, segment), said, source, where=where, speaker=speaker,
            normalised=normalised, segment=segment,
        )  # fmt: skip
