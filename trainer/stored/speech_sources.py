"""Whose recordings are in a model: its sources, as runs and exported folders list them for the model card."""

from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from xtts.shared.cache.cache_spec import CacheSpec, shard_id_of
from xtts.shared.cache.clip_index import KEPT, readable_index

_ASKS = {"by": "attribution", "sa": "the same licence", "nc": "no commercial use", "nd": "no changes"}


@dataclass(frozen=True, kw_only=True)
class SpeechSource:
    """A source: the speech of one corpus or speaker that a model was trained on. None or empty: not known."""

    name: str
    hours: float | None = None
    license: str = ""
    """SPDX identifier in small letters."""
    note: str = ""
    """Conditions of the licence, and whatever else is known."""
    synthetic: bool | None = None
    """Whether a program spoke."""
    through: tuple[str, ...] = ()
    """The starts (`--init-from`) that brought it, the earliest first; empty for a run's own corpus."""


NOT_KNOWN = SpeechSource(name="not known")
_LIST = TypeAdapter(list[SpeechSource])


def parse_sources(stored: object) -> list[SpeechSource]:
    """Parse the `sources` of a JSON file, which may come from elsewhere; `NOT_KNOWN` if it lists none."""
    try:
        return _LIST.validate_python(stored) or [NOT_KNOWN]
    except ValidationError:
        return [NOT_KNOWN]


def sources_of(cache: Path, spec: CacheSpec) -> list[SpeechSource]:
    """The corpora of a cache, with the hours of their kept clips."""
    names = {shard_id_of(shard.file).corpus for shard in spec.shards()}
    hours = dict.fromkeys(names, spec.statistics.seconds / 3600)
    if len(names) > 1:
        with readable_index(cache / spec.index_file) as file:
            clips = file.read(columns=["corpus", "status", "seconds"])
        sums = clips.group_by(["corpus", "status"]).aggregate([("seconds", "sum")]).to_pylist()
        hours = {row["corpus"]: row["seconds_sum"] / 3600 for row in sums if row["status"] == KEPT}
    return [SpeechSource(name=name or "own corpus", hours=hours[name]) for name in sorted(hours)]


def licensed(source: SpeechSource, license: str) -> SpeechSource:
    """The source under a licence, and what that asks, if it is one of Creative Commons."""
    parts = license.lower().split("-")
    asked = ", ".join(words for part, words in _ASKS.items() if parts[0] == "cc" and part in parts)
    note = "asks nothing" if parts[0] == "cc0" else f"asks for {asked}" if asked else ""
    return replace(source, license=license, note=note)
