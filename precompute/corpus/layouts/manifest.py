"""JSON-lines manifests of NeMo, Lhotse cuts, and the lists of Hugging Face's audio folders. Nothing is executed."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from xtts.precompute.archives.tar_files import may_hold_tars
from xtts.precompute.corpus.corpus_files import posix
from xtts.precompute.corpus.layouts.layout import MOST_SECONDS, Layout, checked_clip, checked_segment, segment_name
from xtts.precompute.corpus.layouts.text_columns import METADATA_FILE, USUAL_NAMES
from xtts.precompute.corpus.text_lines import filled_lines
from xtts.shared.cache.clip_index import Clip
from xtts.shared.errors import LockstepError

_TOLERANCE_SECONDS = 1e-3
"""A cut whose bounds differ from its recording's by at most this is the whole recording: Lhotse rounds durations."""
_SAVE = "write each cut to a file of its own: CutSet.save_audios"


def _manifest(name: str, files: tuple[str, ...], *, speaker_folders: bool) -> Layout:
    """Return the layout of a manifest; files: its names in a folder, in the order of preference."""
    matches, read = partial(_holds_manifest, files), partial(_read, files)
    return Layout(name, "JSON lines with audio_filepath and text", matches, read, speaker_folders=speaker_folders)


def _holds_manifest(files: tuple[str, ...], data: Path) -> bool:
    """Whether it is a folder with one of `files`, without `metadata.csv` and tar files."""
    has_manifest = any((data / file).is_file() for file in files)
    return has_manifest and not (data / METADATA_FILE).exists() and not may_hold_tars(data)


def _read(files: tuple[str, ...], data: Path) -> Iterator[Clip]:
    """Yield the clips of JSON lines with `audio_filepath`, `text` and optionally `id`, `speaker`, `language`.

    With `offset`, a clip is a segment of its file, `duration` seconds long. Lhotse cuts are converted to such entries.
    Paths are relative to the manifest; without `id` a clip is called like its file, a segment `FILE_START-END`, in
    milliseconds.
    """
    path = data
    if data.is_dir():
        path = next((data / file for file in files if (data / file).is_file()), data / files[0])
    root = path.parent.absolute()
    for location, line in filled_lines(path):
        entry = parse_entry(line, location)
        if "audio_filepath" not in entry and ("supervisions" in entry or str(entry.get("type")).endswith("Cut")):
            entry = _cut_entry(entry, location)
        elif "file_name" in entry and "audio_filepath" not in entry:  # as in audio folders of Hugging Face
            fields = {kind: first_value(entry, names, location) for kind, names in USUAL_NAMES.items()}
            entry = fields | {"audio_filepath": entry["file_name"], "normalized_text": fields["normalised"]}
        source = posix(str(entry.get("audio_filepath") or ""))
        if Path(source).is_relative_to(root):
            source = Path(source).relative_to(root).as_posix()
        yield clip_of_entry(entry, source, location)


NEMO_FILES = ("manifest.jsonl", "manifest.json", "metadata.jsonl")
NEMO = _manifest("nemo", NEMO_FILES, speaker_folders=True)
LHOTSE = _manifest("lhotse", ("cuts.jsonl", "cuts.jsonl.gz"), speaker_folders=False)


def parse_entry(line: str, location: str) -> dict[str, Any]:
    """Parse a line as a JSON object."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise LockstepError(location, found=f"not JSON ({str(error)[:80]})", expected="one object a line") from None
    if not isinstance(entry, dict):
        raise LockstepError(location, found="not a JSON object", expected='{"audio_filepath": ..., "text": ...}')
    return entry


def clip_of_entry(entry: dict[str, Any], source: str, location: str) -> Clip:
    """Return the clip of an entry, with its audio in `source`; without `text` it has an empty one."""
    if entry.get("text") is None:
        entry = {**entry, "text": ""}  # enough for a vocoder
    for key in ("audio_filepath", "text"):
        if not isinstance(entry.get(key), str):
            raise LockstepError(location, found=f"{key} is {entry.get(key)!r:.60}", expected="a string")
    segment = None
    if entry.get("offset") is not None:
        start, duration = (_seconds_of(entry, key, location) for key in ("offset", "duration"))
        segment = checked_segment(start, duration, location)
    clip_id, normalised, speaker, language = (
        first_value(entry, USUAL_NAMES[key], location) for key in ("id", "normalised", "speaker", "language")
    )
    return checked_clip(
        clip_id or segment_name(PurePosixPath(posix(entry["audio_filepath"])).stem, segment),
        normalised or entry["text"].strip(), source, speaker=speaker, normalised=bool(normalised), language=language,
        location=location, segment=segment,
    )


def _cut_entry(entry: dict[str, Any], location: str) -> dict[str, Any]:
    """Convert a Lhotse cut to an entry of a manifest, with `offset` unless it is all of its recording.

    Text, speaker and language are those of its supervision, whose own times are ignored: as in Lhotse's data set for
    TTS, the cut is the utterance. Raises a `LockstepError` if it is not a cut, is mixed or transformed, or has several
    channels or supervisions.
    """
    recording, source = _recording(entry, location)
    supervisions = entry.get("supervisions")
    if not isinstance(supervisions, list) or not all(isinstance(item, dict) for item in supervisions):
        raise LockstepError(location, found=f"supervisions are {supervisions!r:.60}", expected="a list of objects")
    if len(supervisions) > 1:
        fix = "CutSet.trim_to_supervisions"
        raise LockstepError(location, found=f"{len(supervisions)} supervisions", expected="one", fix=fix)
    supervision = supervisions[0] if supervisions else {}
    start, duration = (_seconds_of(entry, key, location) for key in ("start", "duration"))
    excess = abs(duration - _seconds_of(recording, "duration", location))
    converted = {"id": entry.get("id"), "audio_filepath": source, "text": supervision.get("text")}
    converted |= {key: supervision.get(key) for key in ("speaker", "language")}
    if abs(start) > _TOLERANCE_SECONDS or excess > _TOLERANCE_SECONDS:
        converted |= {"offset": start, "duration": duration}
    return converted


def _recording(entry: dict[str, Any], location: str) -> tuple[dict[str, Any], str]:
    """Return a cut's recording and its file; reject audio that would have to be executed, fetched or mixed."""
    kind, recording = entry.get("type", "MonoCut"), entry.get("recording")
    if kind != "MonoCut":
        raise LockstepError(location, found=f"a cut of type {kind!r:.40}", expected="MonoCut", fix=_SAVE)
    if not isinstance(recording, dict):
        raise LockstepError(location, found="a cut without a recording", expected="a cut with audio")
    if recording.get("transforms"):
        raise LockstepError(location, found="a recording with transforms", expected="audio as it is", fix=_SAVE)
    sources = recording.get("sources")
    source = sources[0] if isinstance(sources, list) and len(sources) == 1 else None
    if not isinstance(source, dict) or source.get("type") != "file" or not isinstance(source.get("source"), str):
        raise LockstepError(location, found="a recording that is not one file", expected="one file", fix=_SAVE)
    channels = source.get("channels")
    if not isinstance(channels, list) or len(channels) != 1:
        raise LockstepError(location, found=f"channels are {channels!r:.40}", expected="one channel", fix=_SAVE)
    return recording, source["source"]


def _seconds_of(entry: dict[str, Any], key: str, location: str) -> float:
    """Return a number of seconds; raise a `LockstepError` for anything else, or more than `MOST_SECONDS`."""
    value = entry.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < MOST_SECONDS:
        raise LockstepError(location, found=f"{key} is {value!r:.60}", expected="a number of seconds")
    return float(value)


def first_value(entry: dict[str, Any], keys: tuple[str, ...], location: str) -> str:
    """Return the value of the first of `keys` that has one, as text; empty if none has.

    Raises a `LockstepError` if the value is neither a string nor an integer.
    """
    for key in keys:
        value = entry.get(key)
        if value is not None and value != "":
            if isinstance(value, bool) or not isinstance(value, str | int):
                raise LockstepError(location, found=f"{key} is {value!r:.60}", expected="a string")
            return str(value).strip()
    return ""
