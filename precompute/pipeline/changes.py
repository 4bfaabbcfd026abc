"""Lines about what a build will do, and why."""

from collections.abc import Collection

import numpy as np
import pyarrow as pa

from xtts.precompute.pipeline.build_request import TOKENISED_AGAIN
from xtts.precompute.pipeline.previous import Reusable
from xtts.precompute.pipeline.staging import Finished
from xtts.precompute.pipeline.write import ShardWork
from xtts.shared.audio.mel import FEATURE_VERSION
from xtts.shared.cache.cache_spec import CacheSpec
from xtts.shared.errors import counted_noun
from xtts.shared.feature_settings import NO_FEATURES, Features, setting_differences

_CONSEQUENCES = {
    "audio": "all mels are computed again",
    "text": TOKENISED_AGAIN,
    "shapes": "the mels come from the cache and are padded again",
    "shards": "the shards are divided again",
    "split": "the clips are divided again",
    "data": "the clips are chosen again, the mels come from the cache",
}


def change_lines(work: ShardWork, staged: Collection[Finished]) -> list[str]:
    """Lines about what changed since the previous build, and its consequences."""
    previous, clips = work.reusable.cache, work.clips
    lines = [previous.problem] if previous.problem else []
    new = {finished.shard.file for finished in staged} - {shard.file for shard in work.reusable.shards.values()}
    if new:
        lines.append(f"reusing {counted_noun(len(new), 'shard')} of an interrupted build")
    if previous.spec is not None and len(previous.rows):
        lines += [*_setting_changes(previous.spec, work.recipe.features), *_corpus_changes(clips, work.reusable)]
    return [*lines, _work_ahead(work)]


def _setting_changes(previous: CacheSpec, new: Features) -> list[str]:
    """A line for another version of the feature extractor, and one for each setting with another value."""
    version, all_mels = previous.feature_version, _CONSEQUENCES["audio"]
    line = f"feature extractor: version {version} -> {FEATURE_VERSION}: {all_mels}"
    return [line] * (version != FEATURE_VERSION) + [
        f"{key}: {before} -> {now}: "
        + ("no shard is rewritten for it" if key in NO_FEATURES else _CONSEQUENCES[key.split(".")[0]])
        for key, before, now in setting_differences(previous.features, new)
    ]


def _corpus_changes(clips: pa.Table, reusable: Reusable) -> list[str]:
    """Lines with the counts of clips that were added or removed, with an example each."""
    has_row, first = reusable.row_of_clip >= 0, ~clips["duplicate"].to_numpy()
    removed = np.ones(len(reusable.cache.rows), bool)
    removed[reusable.row_of_clip[has_row]] = False
    lines = list[str]()
    for change, table, chosen in (("added", clips, ~has_row & first), ("removed", reusable.cache.rows, removed)):
        names = table["id"].filter(chosen).slice(0, 2).to_pylist()
        if names:
            count = int(chosen.sum())
            lines.append(f"{counted_noun(count, 'clip')} {change} ({names[0]}{', ...' * (count > 1)})")
    return lines


def _work_ahead(work: ShardWork) -> str:
    """A line about the shards that will be written."""
    finished = len(work.staged) + len(work.reused)
    if not work.missing:
        return f"{counted_noun(finished, 'shard')} finished, none to write"
    clips = sum(len(shard.plan.clips) for shard in work.missing)
    stored = sum(len(shard.stored.positions) for shard in work.missing)
    sources = f"{clips} clips, {clips - stored} of them from audio and {stored} from stored mels"
    return f"{counted_noun(len(work.missing), 'shard')} to write ({sources}), {finished} kept"
