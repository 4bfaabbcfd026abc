"""JSON-lines manifests as NeMo writes them, and Lhotse cuts, which are read as such lines."""

import json
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from xtts.precompute.archives.tar_files import may_hold_tars
from xtts.precompute.corpus.json_fields import name_of, seconds_of
from xtts.precompute.corpus.layouts.layout import ClipList, checked_segment
from xtts.precompute.corpus.layouts.text_columns import METADATA_FILE
from xtts.precompute.corpus.lhotse_cuts import MANIFESTS, cut_entry, is_cut
from xtts.precompute.corpus.text_lines import filled_lines
from xtts.shared.audio.decode import Segment
from xtts.shared.cache.clip_index import Clip
from xtts.shared.errors import LockstepError


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

    def matches(self, data: Path) -> bool:
        """A folder with one of `files`, without `metadata.csv` and tar files."""
        listed = any((data / file).is_file() for file in self.files)
        return listed and not (data / METADATA_FILE).exists() and not may_hold_tars(data)

    def read(self, data: Path, limit: int | None) -> list[Clip]:
        """The clips of the manifest `data`, or of the one in that folder."""
        path = data
        if data.is_dir():
            path = next((data / file for file in self.files if (data / file).is_file()), data / self.files[0])
        clips = ClipList(limit)
        for where, line in filled_lines(path):
            if clips.is_full:
                break
            _add_line(clips, line, where=where, root=path.parent.absolute())
        return clips.checked(path, "JSON lines with audio_filepath and text")


NEMO = Manifest("nemo", ("manifest.jsonl", "manifest.json"))
LHOTSE = Manifest("lhotse", MANIFESTS)


def parse_entry(line: str, where: str) -> dict[str, Any]:
    """A line of JSON as an object."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise LockstepError(where, found=f"not JSON ({str(error)[:80]})", expected="one object a line") from None
    if not isinstance(entry, dict):
        raise LockstepError(where, found="not a JSON object", expected='{"audio_filepath": ..., "text": ...}')
    return entry


def add_entry(clips: ClipList, entry: dict[str, Any], source: str, *, where: str) -> None:
    """Append the clip of an entry, whose audio lies in `source`."""
    for key in ("audio_filepath", "text"):
        if not isinstance(entry.get(key), str):
            raise LockstepError(where, found=f"{key} is {entry.get(key)!r:.60}", expected="a string")
    segment = _segment(entry, where)
    clip_id, speaker, language = (name_of(entry, (key,), where) for key in ("id", "speaker", "language"))
    clips.add(
        clip_id or _name(entry["audio_filepath"], segment), entry["text"].strip(), source,
        speaker=speaker, language=language, where=where, segment=segment,
    )  # fmt: skip


def _add_line(clips: ClipList, line: str, *, where: str, root: Path) -> None:
    entry = parse_entry(line, where)
    if is_cut(entry):
        entry = cut_entry(entry, where)
    source = str(entry.get("audio_filepath") or "")
    relative = Path(source).relative_to(root).as_posix() if Path(source).is_relative_to(root) else source
    add_entry(clips, entry, relative, where=where)


def _segment(entry: dict[str, Any], where: str) -> Segment | None:
    """The segment that an entry with `offset` is."""
    if entry.get("offset") is None:
        return None
    return checked_segment(seconds_of(entry, "offset", where), seconds_of(entry, "duration", where), where)


def _name(source: str, segment: Segment | None) -> str:
    name = PurePosixPath(source).stem
    if segment is None:
        return name
    return f"{name}_{round(1000 * segment.start)}-{round(1000 * (segment.start + segment.duration))}"
