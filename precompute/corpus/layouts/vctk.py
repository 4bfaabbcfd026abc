"""VCTK: `wav48_silence_trimmed/p225/p225_001_mic1.flac` (or `wav48/p225/p225_001.wav`), `txt/p225/p225_001.txt`."""

from pathlib import Path, PurePosixPath

from xtts.precompute.corpus.corpus_files import audio_by_name, clip_ids, files_below
from xtts.precompute.corpus.layouts.layout import ClipList
from xtts.precompute.corpus.text_lines import read_text
from xtts.shared.cache.clip_index import Clip

_AUDIO_FOLDERS, _TEXT_FOLDER = ("wav48_silence_trimmed", "wav48"), "txt"
_MICROPHONE, _OTHER_MICROPHONE = "_mic1", "_mic2"


class VCTK:
    """A folder for each speaker, of audio and of texts. Of two microphones the first is read."""

    name = "vctk"

    def matches(self, data: Path) -> bool:
        """A folder of texts beside one of audio."""
        return (data / _TEXT_FOLDER).is_dir() and any((data / folder).is_dir() for folder in _AUDIO_FOLDERS)

    def read(self, data: Path, limit: int | None) -> list[Clip]:
        """The clips in the order of speaker and name.

        Audio without text is a clip with an empty text, text without audio one whose audio is missing: the index
        rejects both.
        """
        folder = next((one for one in _AUDIO_FOLDERS if (data / one).is_dir()), _AUDIO_FOLDERS[0])
        audio = {
            name.removesuffix(_MICROPHONE): f"{folder}/{path}"
            for name, path in audio_by_name(files_below(data, folder)).items()
            if not name.endswith(_OTHER_MICROPHONE)
        }
        texts = {path.removesuffix(".txt") for path in files_below(data, _TEXT_FOLDER) if path.endswith(".txt")}
        names = sorted(audio.keys() | texts)
        ids, clips = clip_ids(names), ClipList(limit)
        for name in names:
            if clips.is_full:
                break
            path = data / _TEXT_FOLDER / f"{name}.txt"
            clips.add(
                ids[name], read_text(path) if name in texts else "",
                audio.get(name, f"{folder}/{name}{_MICROPHONE}.flac"),
                where=str(path), speaker=PurePosixPath(name).parent.name,
            )  # fmt: skip
        return clips.checked(data, f"{folder}/SPEAKER/ID{_MICROPHONE}.flac and {_TEXT_FOLDER}/SPEAKER/ID.txt")
