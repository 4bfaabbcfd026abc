"""Saying what changed since the last build, and what will be done about it."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from xtts.precompute.build.previous import PreviousRows
from xtts.precompute.build.staging import PreviousCache
from xtts.precompute.corpus.corpora import Corpora
from xtts.precompute.features.scan import SAME_AUDIO, SAME_LANGUAGE, SAME_SPEAKER, SAME_TEXT
from xtts.shared.audio.mel import FEATURE_VERSION
from xtts.shared.feature_settings import NO_FEATURES, Features, setting_differences

_CONSEQUENCES = {
    "audio": "all mels are computed again",
    "text": "all texts are tokenised again, the mels are taken from the cache",
    "shapes": "the mels are taken from the cache and padded again",
    "shards": "the shards are divided again",
    "split": "the clips are divided again",
    "data": "the clips are chosen again, the mels are taken from the cache",
}
_NO_CONSEQUENCE = "no shard is written for it"


_DIFFERENCES = {
    "with other audio": SAME_AUDIO,
    "with another transcript": SAME_TEXT,
    "with another language": SAME_LANGUAGE,
    "with another speaker": SAME_SPEAKER,
}


def setting_changes(previous: PreviousCache, new: Features) -> list[str]:
    """One line for another version of the feature extractor, and for each setting with another value."""
    before, all_mels = previous.spec.feature_version, _CONSEQUENCES["audio"]
    version = f"feature extractor: version {before} -> {FEATURE_VERSION}: {all_mels}"
    return [version] * (before != FEATURE_VERSION) + [
        f"{key}: {before} -> {now}: {_NO_CONSEQUENCE if key in NO_FEATURES else _CONSEQUENCES[key.split('.')[0]]}"
        for key, before, now in setting_differences(previous.spec.features, new)
    ]


def weight_changes(previous: PreviousCache, known: Iterable[str], corpora: Corpora) -> list[str]:
    """One line for each corpus, of those `known` before, that training draws from more or less often."""
    old, new = previous.spec.weights, corpora.weights
    there = corpora.roots.keys() & set(known)
    weights = {name: (old.get(name, 1.0), new.get(name, 1.0)) for name in sorted(there)}
    changed = [(name or "the corpus without a name", *pair) for name, pair in weights.items() if pair[0] != pair[1]]
    return [f"weight of {name}: {was:g} -> {now:g}: {_NO_CONSEQUENCE}" for name, was, now in changed]


def corpus_changes(clips: Any, cached: PreviousRows) -> list[str]:  # noqa: ANN401 - pyarrow ships no types
    """How many clips were added, removed, recorded again or transcribed again, with an example each."""
    known, first = cached.found >= 0, ~clips["duplicate"].to_numpy()
    removed = np.ones(len(cached.rows), bool)
    removed[cached.found[known]] = False
    groups = [("added", clips, ~known & first), ("removed", cached.rows, removed)]
    groups += [(what, clips, known & (cached.same & bit == 0)) for what, bit in _DIFFERENCES.items()]
    lines = list[str]()
    for what, table, chosen in groups:
        names = table["id"].filter(chosen).slice(0, 2).to_pylist()
        if names:
            count = int(chosen.sum())
            shown = f"{names[0]}{', ...' if count > 1 else ''}"
            lines.append(f"{count} {'clip' if count == 1 else 'clips'} {what} ({shown})")
    return lines


def work_ahead(*, ready: int, missing: int, clips: int, stored: int) -> list[str]:
    """What the build will do."""
    if not missing:
        return [f"{ready} shards are finished, none is written"]
    sources = f"{clips} clips, {clips - stored} of them from audio and {stored} from stored mels"
    return [f"{missing} shards are written ({sources}), {ready} are kept"]
