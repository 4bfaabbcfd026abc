"""Saying what changed since the last build, and what will be done about it."""

from collections.abc import Iterable

import numpy as np

from xtts.precompute.build.scanning import Scan
from xtts.precompute.build.staging import Prior
from xtts.precompute.corpus.corpora import Corpora
from xtts.precompute.features.clip_columns import reason_number
from xtts.precompute.features.earlier_rows import EarlierColumns
from xtts.precompute.features.row_parts import EARLIER_PARTS, take_rows
from xtts.precompute.features.scan_part import SAME_AUDIO, SAME_LANGUAGE, SAME_SPEAKER, SAME_TEXT
from xtts.shared.audio.mel import FRONT_END
from xtts.shared.cache.clip_index import DUPLICATE
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


def setting_changes(prior: Prior, new: Features) -> list[str]:
    """One line for another version of the front end, and for each setting with another value."""
    version = f"front end: version {prior.spec.front_end} -> {FRONT_END}: {_CONSEQUENCES['audio']}"
    return [version] * (prior.spec.front_end != FRONT_END) + [
        f"{key}: {before} -> {now}: {_NO_CONSEQUENCE if key in NO_FEATURES else _CONSEQUENCES[key.split('.')[0]]}"
        for key, before, now in setting_differences(prior.spec.features, new)
    ]


def weight_changes(prior: Prior, known: Iterable[str], corpora: Corpora) -> list[str]:
    """One line for each corpus, of those `known` before, that training draws from more or less often."""
    old, new = prior.spec.weights, corpora.weights
    there = corpora.roots.keys() & set(known)
    weights = {name: (old.get(name, 1.0), new.get(name, 1.0)) for name in sorted(there)}
    changed = [(name or "the corpus without a name", *pair) for name, pair in weights.items() if pair[0] != pair[1]]
    return [f"weight of {name}: {was:g} -> {now:g}: {_NO_CONSEQUENCE}" for name, was, now in changed]


def corpus_changes(scan: Scan, cached: EarlierColumns) -> list[str]:
    """How many clips were added, removed, recorded again or transcribed again, with an example each."""
    ledger, known = scan.ledger, scan.cached >= 0
    again = ledger.columns.reason == reason_number(DUPLICATE)
    added = np.flatnonzero(~again if not len(known) else ~known & ~again)
    removed = np.ones(len(cached), bool)
    removed[scan.cached[known]] = False
    lost = np.flatnonzero(removed)
    groups = [("added", added, ledger.ids(added[:1]))]
    rows = take_rows(ledger.folder, EARLIER_PARTS, cached.spots(lost[:1]))
    groups.append(("removed", lost, [row.clip.id for row in rows]))
    for what, bit in _DIFFERENCES.items():
        other = np.flatnonzero(known & (scan.cached_same & bit == 0))
        groups.append((what, other, ledger.ids(other[:1])))
    return [
        f"{len(clips)} {'clip' if len(clips) == 1 else 'clips'} {what} ({names[0]}{', ...' if len(clips) > 1 else ''})"
        for what, clips, names in groups
        if len(clips)
    ]


def work_ahead(*, ready: int, missing: int, clips: int, stored: int) -> list[str]:
    """What the build will do."""
    if not missing:
        return [f"{ready} shards are finished, none is written"]
    sources = f"{clips} clips, {clips - stored} of them from audio and {stored} from stored mels"
    return [f"{missing} shards are written ({sources}), {ready} are kept"]
