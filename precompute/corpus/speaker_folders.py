"""Speakers that no list names: folders that are people, or days, chapters and styles of one person."""

import re
from pathlib import Path, PurePosixPath

import pyarrow as pa
import pyarrow.compute as pc
import yaml

from xtts.precompute.corpus.clip_fields import check_name
from xtts.precompute.corpus.corpus_files import nfc
from xtts.shared.cache.clip_index import with_column
from xtts.shared.errors import LockstepError

FOLDERS, ONE = "folders", "one"
"""Values of `--speakers`."""
_TABLE = yaml.load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"), yaml.BaseLoader)
_PARTS, _NUMBERED, _STYLES = ("|".join(_TABLE[name].split()) for name in ("parts", "numbered", "styles"))
_PLACES = re.compile(rf"({'|'.join(_TABLE['places'].split())})[-_. ]?\d*", re.IGNORECASE)
"""Names of folders that hold those of speakers."""
_COUNT = r"(?:[\W_]*\d.*|[\W_]+(?:[a-z]|[ivx]+))"
_SESSIONS = re.compile(
    rf"(?:{_PARTS})(?:{_COUNT})?|(?:{_NUMBERED}){_COUNT}|\d+[\W_]*(?:{_PARTS}|{_NUMBERED})(?:[\W_]*\d+)?|{_STYLES}"
    r"|\d+(?:[-_. :T]\d+)*(?:[\W_T]*|(?<=\d[-_. :]\d\d)[\W_T].*)|第.+[章回集話话天日]",
    re.IGNORECASE,
)
"""Names of folders that are days, chapters, numbers or styles of one person."""


def is_speaker(folder: str) -> bool:
    """Whether a folder's name may be that of a person."""
    return not (_PLACES.fullmatch(folder) or _SESSIONS.fullmatch(folder))


def with_speakers(clips: pa.Table, data: Path, choice: str | None, *, by_folder: bool) -> tuple[pa.Table, list[str]]:
    """Return the clips with speakers, and a line about what was decided unless there was no choice.

    choice: `FOLDERS`, `ONE`, or None to tell by the folders' names. by_folder: whether the layout's folders may be
    speakers; where clips name some, these are taken.
    """
    if choice not in (None, FOLDERS, ONE):
        raise LockstepError("--speakers", found=repr(choice), expected=f"{FOLDERS} or {ONE}")
    if choice == ONE:
        return with_column(clips, "speaker", [""] * len(clips)), [
            f"{data}: all clips are one speaker's (--speakers one)"
        ]
    if pc.any(pc.not_equal(clips["speaker"], "")).as_py() or not (by_folder or choice):
        return clips, []
    folders = pc.replace_substring_regex(clips["source"], "(^|/)[^/]*$", "").combine_chunks().dictionary_encode()
    paths = (PurePosixPath(nfc(folder)) for folder in folders.dictionary.to_pylist())
    inner = [[] if path.is_absolute() else [p for p in path.parts if not _PLACES.fullmatch(p)] for path in paths]
    first = {parts[0] if parts else "" for parts in inner}
    speakers = [next((part for part in parts if choice or is_speaker(part)), "") for parts in inner]
    names = sorted(set(speakers))
    if len(names) < 2 or not (names[0] or choice):
        note = f"{data}: folders such as {max(first)} are one speaker's; if each is a speaker: --speakers {FOLDERS}"
        return clips, [note] if len(first) > 1 else []
    for name in filter(None, names):
        check_name(name, what="speaker", location=str(data))
    shown = ", ".join(names[:3]) + ", ..." * (len(names) > 3)
    clips = with_column(clips, "speaker", pa.array(speakers, pa.large_string()).take(folders.indices))
    return clips, [f"{data}: {len(names)} folders are the speakers: {shown}; if they are not: --speakers {ONE}"]
