"""JSON-lines manifests as NeMo writes them; Lhotse cuts and Hugging Face's lists are read as such lines.

Nothing in them is executed.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from xtts.precompute.archives.tar_files import may_hold_tars
from xtts.precompute.corpus.layouts.layout import MOST_SECONDS, checked_clip, checked_segment, segment_name
from xtts.precompute.corpus.layouts.text_columns import METADATA_FILE, USUAL_NAMES
from xtts.precompute.corpus.text_lines import filled_lines
from xtts.shared.cache.clip_index import Clip
from xtts.shared.errors import LockstepError

_TOLERANCE_SECONDS = 1e-3
"""Lhotse rounds durations; a cut that is this much shorter than its recording is all of it."""
_SAVE = "write each cut to a file of its own: CutSet.save_audios"


@dataclass(frozen=True)
class Manifest:
    """A file of JSON lines of `audio_filepath`, `text` and, where wanted, `id`, `speaker`, `language`.

    With `offset`, a clip is a segment of its file, `duration` seconds long. Lhotse cuts are read as such lines. Paths
    are relative to the manifest; without `id` a clip is called like its file, and a segment `FILE_START-END`, in
    milliseconds.
    """

    name: str
    files: tuple[str, ...]
    """What a folder of this layout holds, the first first."""
    expected: str = "JSON lines with audio_filepath and text"

    def matches(self, data: Path) -> bool:
        """A folder with one of `files`, without `metadata.csv` and tar files."""
        listed = any((data / file).is_file() for file in self.files)
        return listed and not (data / METADATA_FILE).exists() and not may_hold_tars(data)

    def read(self, data: Path) -> Iterator[Clip]:
        """The clips of the manifest `data`, or of the one in that folder."""
        path = data
        if data.is_dir():
            path = next((data / file for file in self.files if (data / file).is_file()), data / self.files[0])
        root = path.parent.absolute()
        for where, line in filled_lines(path):
            entry = parse_entry(line, where)
            if "audio_filepath" not in entry and ("supervisions" in entry or str(entry.get("type")).endswith("Cut")):
                entry = _cut_entry(entry, where)
            elif "file_name" in entry and "audio_filepath" not in entry:  # as in audio folders of Hugging Face
                said = {kind: name_of(entry, names, where) for kind, names in USUAL_NAMES.items()}
                entry = said | {"audio_filepath": entry["file_name"]}
            source = str(entry.get("audio_filepath") or "")
            if Path(source).is_relative_to(root):
                source = Path(source).relative_to(root).as_posix()
            yield clip_of_entry(entry, source, where=where)


NEMO = Manifest("nemo", ("manifest.jsonl", "manifest.json", "metadata.jsonl"))
LHOTSE = Manifest("lhotse", ("cuts.jsonl", "cuts.jsonl.gz"))


def parse_entry(line: str, where: str) -> dict[str, Any]:
    """A line of JSON as an object."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise LockstepError(where, found=f"not JSON ({str(error)[:80]})", expected="one object a line") from None
    if not isinstance(entry, dict):
        raise LockstepError(where, found="not a JSON object", expected='{"audio_filepath": ..., "text": ...}')
    return entry


def clip_of_entry(entry: dict[str, Any], source: str, *, where: str) -> Clip:
    """The clip of an entry, whose audio lies in `source`."""
    for key in ("audio_filepath", "text"):
        if not isinstance(entry.get(key), str):
            raise LockstepError(where, found=f"{key} is {entry.get(key)!r:.60}", expected="a string")
    segment = None
    if entry.get("offset") is not None:
        segment = checked_segment(_seconds_of(entry, "offset", where), _seconds_of(entry, "duration", where), where)
    clip_id, speaker, language = (name_of(entry, USUAL_NAMES[key], where) for key in ("id", "speaker", "language"))
    return checked_clip(
        clip_id or segment_name(PurePosixPath(entry["audio_filepath"]).stem, segment), entry["text"].strip(), source,
        speaker=speaker, language=language, where=where, segment=segment,
    )  # fmt: skip


def _cut_entry(entry: dict[str, Any], where: str) -> dict[str, Any]:
    """The same clip as an entry of a manifest, with `offset` if it is a part of its recording.

    The text, speaker and language are those of its supervision, whose own times do not count: as in Lhotse's data set
    for TTS, the cut is the utterance. A `LockstepError` where it is no cut, or one that is mixed, transformed, of
    several channels or supervisions.
    """
    recording, source = _recording(entry, where)
    supervisions = entry.get("supervisions")
    if not isinstance(supervisions, list) or not all(isinstance(one, dict) for one in supervisions):
        raise LockstepError(where, found=f"supervisions are {supervisions!r:.60}", expected="a list of objects")
    if len(supervisions) > 1:
        fix = "CutSet.trim_to_supervisions"
        raise LockstepError(where, found=f"{len(supervisions)} supervisions", expected="one", fix=fix)
    said = supervisions[0] if supervisions else {}
    start, duration = _seconds_of(entry, "start", where), _seconds_of(entry, "duration", where)
    whole = _seconds_of(recording, "duration", where)
    plain = {"id": entry.get("id"), "audio_filepath": source, "text": said.get("text") or ""}
    plain |= {key: said.get(key) for key in ("speaker", "language")}
    is_whole = abs(start) <= _TOLERANCE_SECONDS and abs(duration - whole) <= _TOLERANCE_SECONDS
    return plain if is_whole else {**plain, "offset": start, "duration": duration}


def _recording(entry: dict[str, Any], where: str) -> tuple[dict[str, Any], str]:
    """The recording of a cut and its file; what would have to be executed, fetched or mixed is refused."""
    kind, recording = entry.get("type", "MonoCut"), entry.get("recording")
    if kind != "MonoCut":
        raise LockstepError(where, found=f"a cut of type {kind!r:.40}", expected="MonoCut", fix=_SAVE)
    if not isinstance(recording, dict):
        raise LockstepError(where, found="a cut without a recording", expected="a cut with audio")
    if recording.get("transforms"):
        raise LockstepError(where, found="a recording with transforms", expected="audio as it is", fix=_SAVE)
    sources = recording.get("sources")
    source = sources[0] if isinstance(sources, list) and len(sources) == 1 else None
    if not isinstance(source, dict) or source.get("type") != "file" or not isinstance(source.get("source"), str):
        raise LockstepError(where, found="a recording that is not one file", expected="one file", fix=_SAVE)
    channels = source.get("channels")
    if not isinstance(channels, list) or len(channels) != 1:
        raise LockstepError(where, found=f"channels are {channels!r:.40}", expected="one channel", fix=_SAVE)
    return recording, source["source"]


def _seconds_of(entry: dict[str, Any], key: str, where: str) -> float:
    """A number; a `LockstepError` for anything else, and for what no recording lasts."""
    value = entry.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < MOST_SECONDS:
        raise LockstepError(where, found=f"{key} is {value!r:.60}", expected="a number of seconds")
    return float(value)


def name_of(entry: dict[str, Any], keys: tuple[str, ...], where: str) -> str:
    """What the first of these keys that has a value says, numbers as text; empty where none has one.

    A `LockstepError` where the value is neither a string nor a whole number.
    """
    for key in keys:
        value = entry.get(key)
        if value is not None and value != "":
            if isinstance(value, bool) or not isinstance(value, str | int):
                raise LockstepError(where, found=f"{key} is {value!r:.60}", expected="a string")
            return str(value).strip()
    return ""
