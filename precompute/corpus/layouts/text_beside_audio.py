"""Corpora with a text file for each audio file instead of a list: VCTK, LibriTTS, LibriTTS-R, and plain folders."""

import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path, PurePosixPath

from xtts.precompute.corpus.corpus_files import SUFFIXES, audio_by_name, clip_ids, files_below, nfc
from xtts.precompute.corpus.layouts.layout import Layout, checked_clip, segment_name
from xtts.precompute.corpus.layouts.timed_text import SUBTITLES, TimedText, texts_in
from xtts.shared.cache.clip_index import Clip

_AUDIO_FOLDERS, _TEXT_FOLDER = ("wav48_silence_trimmed", "wav48"), "txt"
_MICROPHONE, _OTHER_MICROPHONE = "_mic1", "_mic2"


def _layout(name: str, expected: str, suffixes: tuple[str, ...], *, by_speaker: bool) -> Layout:
    """Return the layout of `ID.wav` with a text file of the same name, at any depth, among other files.

    suffixes: of texts in the order of preference. by_speaker: the paths are SPEAKER/CHAPTER/ID.wav, and texts are
    normalised.
    """
    return Layout(
        name=name, expected=expected, matches=partial(_has_pair, suffixes),
        read=partial(_read, suffixes, by_speaker=by_speaker),
    )  # fmt: skip


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
    )  # fmt: skip


def _speaker(data: Path, name: str) -> str:
    """Return the name of the folder above the chapter's, even if `--data` is that folder."""
    parts = Path(os.path.abspath(data / name)).parts
    return parts[-3] if len(parts) > 3 else ""


LIBRITTS = _layout("libritts", "ID.wav with ID.normalized.txt beside it", (".normalized.txt",), by_speaker=True)
PLAIN_FOLDER = _layout("folder", "ID.wav with ID.txt beside it", (".txt", SUBTITLES), by_speaker=False)


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
    name="vctk", expected="wav48/SPEAKER/ID_mic1.flac and txt/SPEAKER/ID.txt", read=_read_vctk,
    matches=lambda data: (data / _TEXT_FOLDER).is_dir() and any((data / name).is_dir() for name in _AUDIO_FOLDERS),
)  # fmt: skip


def _texts(paths: list[str], suffixes: tuple[str, ...]) -> dict[str, str]:
    """Map `nfc` path without suffix to path; a clip with several texts has the first of `suffixes`."""
    return {
        nfc(path.removesuffix(suffix)): path
        for suffix in reversed(suffixes) for path in paths if path.endswith(suffix)
    }  # fmt: skip


def _clips(
    data: Path, audio: Mapping[str, str], texts: Mapping[str, str], missing_audio: str,
    speaker_of: Callable[[Path, str], str] | None = None, *, normalised: bool = False,
) -> Iterator[Clip]:  # fmt: skip
    """Yield the clips in the order of their names: one for each recording or text, or for each segment of a text.

    audio, texts: paths by name. missing_audio: the path of missing audio, with `{}` for the name.
    """
    names = sorted(audio.keys() | texts)
    ids = clip_ids(names)
    for name in names:
        source, path = audio.get(name, missing_audio.format(name)), data / texts.get(name, name)
        speaker = speaker_of(data, name) if speaker_of else ""
        for location, text, segment in texts_in(path) if name in texts else [TimedText(str(data / source), "")]:
            yield checked_clip(
                segment_name(ids[name], segment), text, source, location=location, segment=segment,
                normalised=normalised, speaker=speaker,
            )  # fmt: skip
