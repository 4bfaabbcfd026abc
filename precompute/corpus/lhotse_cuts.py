"""Lhotse cuts, read as entries of a manifest: only whole recordings of one channel; nothing is executed."""

from typing import Any

from xtts.shared.errors import LockstepError

MANIFESTS = ("cuts.jsonl", "cuts.jsonl.gz")
"""What a folder of cuts holds."""
_KEYS = ("id", "start", "duration", "channel", "recording", "supervisions", "type")
_SUPERVISION_KEYS = ("id", "recording_id", "start", "duration", "channel", "text", "language", "speaker", "gender")
_TOLERANCE_SECONDS = 1e-3
"""Lhotse rounds durations; a slice that is this much shorter is the whole."""
_SAVE = "write each cut to a file of its own: CutSet.save_audios"


def is_cut(entry: dict[str, Any]) -> bool:
    """Whether a line of JSON is a cut, and no entry of another manifest."""
    return "audio_filepath" not in entry and ("supervisions" in entry or str(entry.get("type")).endswith("Cut"))


def cut_entry(entry: dict[str, Any], where: str) -> dict[str, Any]:
    """The same clip as an entry with `id`, `audio_filepath`, `text` and `speaker`; a `LockstepError` for a slice."""
    _check_kind(entry, where)
    cut = _deserialise(entry, where)
    source, segments = cut.recording.sources[0], cut.supervisions
    if len(source.channels) != 1:
        raise LockstepError(where, found=f"a recording of {len(source.channels)} channels", expected="one", fix=_SAVE)
    if not (abs(cut.start) <= _TOLERANCE_SECONDS and abs(cut.duration - cut.recording.duration) <= _TOLERANCE_SECONDS):
        found = f"a slice: {cut.duration:g} s from {cut.start:g} s on, of {cut.recording.duration:g} s"
        raise LockstepError(where, found=found, expected="a whole recording", fix=_SAVE)
    if len(segments) > 1:
        fix = f"CutSet.trim_to_supervisions, then {_SAVE}"
        raise LockstepError(where, found=f"{len(segments)} supervisions", expected="one", fix=fix)
    said = {key: getattr(segments[0], key) or "" if segments else "" for key in ("text", "speaker", "language")}
    return {"id": cut.id, "audio_filepath": source.source, **said}


def _check_kind(entry: dict[str, Any], where: str) -> None:
    """Refuse what lhotse would have to execute, fetch or mix, before lhotse sees it."""
    kind = entry.get("type", "MonoCut")
    recording = entry.get("recording")
    if kind != "MonoCut":
        raise LockstepError(where, found=f"a cut of type {kind!r:.40}", expected="MonoCut", fix=_SAVE)
    if not isinstance(recording, dict):
        raise LockstepError(where, found="a cut without a recording", expected="a cut with audio")
    if recording.get("transforms"):
        raise LockstepError(where, found="a recording with transforms", expected="audio as it is", fix=_SAVE)
    sources = recording.get("sources")
    source = sources[0] if isinstance(sources, list) and len(sources) == 1 else None
    if not isinstance(source, dict) or source.get("type") != "file":
        raise LockstepError(where, found="a recording that is not one file", expected="one file", fix=_SAVE)


def _deserialise(entry: dict[str, Any], where: str) -> Any:  # noqa: ANN401 - a class of an optional library
    try:
        from lhotse.serialization import deserialize_item  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise LockstepError(where, found="a cut of Lhotse, without lhotse", fix="pip install lhotse") from None
    try:
        segments = [{key: segment[key] for key in _SUPERVISION_KEYS if key in segment}
                    for segment in entry.get("supervisions") or []]  # fmt: skip
        plain = {key: entry[key] for key in _KEYS if key in entry}
        recording = {key: value for key, value in entry["recording"].items() if key != "transforms"}
        cut = deserialize_item({**plain, "type": "MonoCut", "recording": recording, "supervisions": segments})
        cut.start, cut.duration = float(cut.start), float(cut.duration)
        cut.recording.duration = float(cut.recording.duration)
        if not isinstance(cut.recording.sources[0].channels, list):
            raise TypeError("channels are no list")
    except (TypeError, KeyError, ValueError, AttributeError, AssertionError) as error:
        raise LockstepError(where, found=f"no cut that lhotse reads ({str(error)[:80]})", expected="a cut") from None
    return cut
