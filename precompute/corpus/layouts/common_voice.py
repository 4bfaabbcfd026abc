"""Common Voice: `validated.tsv` with a header, audio in `clips/`."""

from pathlib import Path

from xtts.precompute.corpus.corpus_files import is_audio, source_of, without_suffix
from xtts.precompute.corpus.layouts.layout import ClipList, folder_of
from xtts.precompute.corpus.plain_names import check_name
from xtts.precompute.corpus.text_lines import filled_lines, first_line
from xtts.shared.cache.clip_index import Clip
from xtts.shared.errors import LockstepError

_LIST, _AUDIO_FOLDER, _SUFFIX = "validated.tsv", "clips", ".mp3"
_NEEDED = ("client_id", "path", "sentence")
_LANGUAGE = "locale"


class CommonVoice:
    """A clip is called like its file; `client_id` is the speaker and `locale` the language."""

    name = "common-voice"

    def matches(self, data: Path) -> bool:
        """A folder with `validated.tsv`, or a TSV file with Common Voice's columns."""
        if data.is_dir():
            return (data / _LIST).exists()
        return data.suffix == ".tsv" and set(_NEEDED) <= set(_columns(first_line(data)))

    def read(self, data: Path, limit: int | None) -> list[Clip]:
        """The clips in the order of their lines."""
        root, path = folder_of(data), data if data.is_file() else data / _LIST
        lines = filled_lines(path)
        header = _columns(next(lines, ("", ""))[1])
        for name in _NEEDED:
            if name not in header:
                raise LockstepError(f"{path}:1", found=f"no column {name}", expected="the header of Common Voice")
        clips = ClipList(limit)
        for where, line in lines:
            if clips.is_full:
                break
            columns = _columns(line)
            if len(columns) != len(header):
                found = f"{len(columns)} columns"
                raise LockstepError(where, found=found, expected=f"{len(header)} as in the header")
            said = dict(zip(header, columns, strict=True))
            file = said["path"] if is_audio(said["path"]) else said["path"] + _SUFFIX
            check_name(file, what="path", where=where)
            clips.add(
                without_suffix(file), said["sentence"], source_of(root, file, (_AUDIO_FOLDER,), where),
                where=where, speaker=said["client_id"], language=said.get(_LANGUAGE, ""),
            )  # fmt: skip
        return clips.checked(path, "lines below the header")


def _columns(line: str) -> list[str]:
    return [column.strip() for column in line.split("\t")]
