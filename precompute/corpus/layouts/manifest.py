"""JSON-lines manifests of NeMo, and the lists of Hugging Face's audio folders."""

import json
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from xtts.precompute.archives.tar_files import may_hold_tars
from xtts.precompute.corpus.corpus_files import posix
from xtts.precompute.corpus.layouts.layout import MOST_SECONDS, Layout, checked_clip, checked_segment, segment_name
from xtts.precompute.corpus.layouts.text_columns import METADATA_FILE, USUAL_NAMES
from xtts.precompute.corpus.text_lines import filled_lines
from xtts.shared.cache.clip_index import Clip
from xtts.shared.errors import LockstepError

NEMO_FILES = ("manifest.jsonl", "manifest.json", "metadata.jsonl")
"""Names of a manifest in a folder, in the order of preference."""


def _holds_manifest(data: Path) -> bool:
    """Whether it is a folder with one of `NEMO_FILES`, without `metadata.csv` and tar files."""
    has_manifest = any((data / file).is_file() for file in NEMO_FILES)
    return has_manifest and not (data / METADATA_FILE).exists() and not may_hold_tars(data)


def _read(data: Path) -> Iterator[Clip]:
    """Yield the clips of JSON lines with `audio_filepath`, `text` and optionally `id`, `speaker`, `language`.

    With `offset`, a clip is a segment of its file, `duration` seconds long.
    Paths are relative to the manifest; without `id` a clip is called like its file, a segment `FILE_START-END`, in
    milliseconds.
    """
    path = data
    if data.is_dir():
        path = next((data / file for file in NEMO_FILES if (data / file).is_file()), data / NEMO_FILES[0])
    root = path.parent.absolute()
    for location, line in filled_lines(path):
        entry = parse_entry(line, location)
        if "file_name" in entry and "audio_filepath" not in entry:  # as in audio folders of Hugging Face
            fields = {kind: first_value(entry, names, location) for kind, names in USUAL_NAMES.items()}
            entry = fields | {"audio_filepath": entry["file_name"], "normalized_text": fields["normalised"]}
        source = posix(str(entry.get("audio_filepath") or ""))
        if Path(source).is_relative_to(root):
            source = Path(source).relative_to(root).as_posix()
        yield clip_of_entry(entry, source, location)


NEMO = Layout("nemo", "JSON lines with audio_filepath and text", _holds_manifest, _read, speaker_folders=True)


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
