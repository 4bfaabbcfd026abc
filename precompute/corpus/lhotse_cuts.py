"""Lhotse cuts, read as entries of a manifest: one channel of one file, whole or in part; nothing is executed."""

from typing import Any

from xtts.precompute.corpus.json_fields import seconds_of, string_of
from xtts.shared.errors import LockstepError

MANIFESTS = ("cuts.jsonl", "cuts.jsonl.gz")
"""What a folder of cuts holds."""
_TOLERANCE_SECONDS = 1e-3
"""Lhotse rounds durations; a cut that is this much shorter than its recording is all of it."""
_SAVE = "write each cut to a file of its own: CutSet.save_audios"


def is_cut(entry: dict[str, Any]) -> bool:
    """Whether a line of JSON is a cut, and no entry of another manifest."""
    return "audio_filepath" not in entry and ("supervisions" in entry or str(entry.get("type")).endswith("Cut"))


def cut_entry(entry: dict[str, Any], where: str) -> dict[str, Any]:
    """The same clip as an entry of a manifest, with `offset` if it is a part of its recording.

    The text, speaker and language are those of its supervision, whose own times do not count: as in Lhotse's data set
    for TTS, the cut is the utterance.

    Raises:
        LockstepError: It is no cut, or one that is mixed, transformed, of several channels or supervisions.
    """
    recording, source = _recording(entry, where)
    supervisions = entry.get("supervisions")
    if not isinstance(supervisions, list) or not all(isinstance(one, dict) for one in supervisions):
        raise LockstepError(where, found=f"supervisions are {supervisions!r:.60}", expected="a list of objects")
    if len(supervisions) > 1:
        fix = "CutSet.trim_to_supervisions"
        raise LockstepError(where, found=f"{len(supervisions)} supervisions", expected="one", fix=fix)
    said = supervisions[0] if supervisions else {}
    start, duration = seconds_of(entry, "start", where), seconds_of(entry, "duration", where)
    whole = seconds_of(recording, "duration", where)
    plain = {key: string_of(said, key, where) for key in ("text", "speaker", "language")}
    plain |= {"id": string_of(entry, "id", where), "audio_filepath": source}
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
