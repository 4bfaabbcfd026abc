"""Saying what changed since the last build, and what will be done about it."""

from collections.abc import Callable, Iterable, Mapping

from xtts.precompute.build.staging import Prior
from xtts.precompute.corpus.corpora import Corpora
from xtts.precompute.features.scan import ScannedRow, may_be_same_file
from xtts.shared.audio.mel import FRONT_END
from xtts.shared.cache.clip_index import IndexRow
from xtts.shared.feature_settings import NO_FEATURES, setting_differences

_CONSEQUENCES = {
    "audio": "all mels are computed again",
    "text": "all texts are tokenised again, the mels are taken from the cache",
    "shapes": "the mels are taken from the cache and padded again",
    "shards": "the shards are divided again",
    "split": "the clips are divided again",
    "data": "the clips are chosen again, the mels are taken from the cache",
}
_NO_CONSEQUENCE = "no shard is written for it"


_DIFFERENCES: dict[str, Callable[[ScannedRow, IndexRow], bool]] = {
    "with other audio": may_be_same_file,
    "with another transcript": lambda row, was: row.clip.text == was.clip.text,
    "with another language": lambda row, was: row.clip.language == was.clip.language,
    "with another speaker": lambda row, was: row.clip.speaker == was.clip.speaker,
}


def setting_changes(prior: Prior, new: Mapping[str, Mapping[str, object]]) -> list[str]:
    """One line for another version of the front end, and for each setting with another value."""
    version = f"front end: version {prior.front_end} -> {FRONT_END}: {_CONSEQUENCES['audio']}"
    return [version] * (prior.front_end != FRONT_END) + [
        f"{key}: {before} -> {now}: {_NO_CONSEQUENCE if key in NO_FEATURES else _CONSEQUENCES[key.split('.')[0]]}"
        for key, before, now in setting_differences(prior.spec.features, new)
    ]


def weight_changes(prior: Prior, corpora: Corpora) -> list[str]:
    """One line for each corpus, of those that were there before, that training draws from more or less often."""
    old, new = prior.spec.weights, corpora.weights
    there = {row.clip.corpus for row in prior.rows} & corpora.roots.keys()
    weights = {name: (old.get(name, 1.0), new.get(name, 1.0)) for name in sorted(there)}
    changed = [(name or "the corpus without a name", *pair) for name, pair in weights.items() if pair[0] != pair[1]]
    return [f"weight of {name}: {was:g} -> {now:g}: {_NO_CONSEQUENCE}" for name, was, now in changed]


def corpus_changes(old: Iterable[IndexRow], new: Iterable[ScannedRow]) -> list[str]:
    """How many clips were added, removed, recorded again or transcribed again, with an example each."""
    before = {row.clip.id: row for row in old if not row.clip.duplicate}
    groups: dict[str, list[str]] = {what: [] for what in ("added", "removed", *_DIFFERENCES)}
    for row in (row for row in new if not row.clip.duplicate):
        was = before.pop(row.clip.id, None)
        if was is None:
            groups["added"].append(row.clip.id)
            continue
        for what, same in _DIFFERENCES.items():
            if not same(row, was):
                groups[what].append(row.clip.id)
    groups["removed"] += before
    return [
        f"{len(names)} {'clip' if len(names) == 1 else 'clips'} {what} ({names[0]}{', ...' if names[1:] else ''})"
        for what, names in groups.items()
        if names
    ]


def work_ahead(*, ready: int, missing: int, clips: int, stored: int) -> list[str]:
    """What the build will do."""
    if not missing:
        return [f"{ready} shards are finished, none is written"]
    sources = f"{clips} clips, {clips - stored} of them from audio and {stored} from stored mels"
    return [f"{missing} shards are written ({sources}), {ready} are kept"]
