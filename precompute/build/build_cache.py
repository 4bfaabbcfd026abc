"""Stage 1 from corpus to cache: survey, write what is missing, commit."""

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from xtts.precompute.build.audio_index import measure_sample
from xtts.precompute.build.commit import commit, describe
from xtts.precompute.build.extract import ShardTask, write_shard
from xtts.precompute.build.fetch import Fetched, fetched_audio, plan_fetch
from xtts.precompute.build.ledger import check_rejects, gather
from xtts.precompute.build.shard_plan import ShardPlan, stored_bytes
from xtts.precompute.build.staging import Finished, StagingArea, written_row
from xtts.precompute.build.survey import Request, Survey, make_request, survey
from xtts.precompute.corpus.corpus_entries import Data
from xtts.precompute.workers.pool import WorkerPool
from xtts.precompute.workers.progress import Progress
from xtts.precompute.workers.stopping import check_free_space, disk_errors_explained
from xtts.shared.cache.cache_spec import CacheSpec
from xtts.shared.cache.clip_index import IndexRow, Kept, Rejected
from xtts.shared.config import Config
from xtts.shared.system.folder_lock import exclusive
from xtts.shared.system.peak_memory import peak_resident_bytes
from xtts.shared.text.letter_counts import LetterCounts


@dataclass(frozen=True, kw_only=True)
class BuildReport:
    """What a build did."""

    spec: CacheSpec
    rejected: Mapping[str, int]
    """Clips by reason."""
    letters: list[LetterCounts]
    """Of each language."""
    unnormalised: int
    """Clips whose text is the raw one."""
    padding_efficiency: list[float]
    """Useful frames / stored frames of each bucket."""
    kept_shards: int
    written_shards: int
    changed: bool
    """False when the cache was already up to date."""
    wall_seconds: float
    peak_bytes: int
    """Upper bound of the memory used at once: the largest resident size of this process and, per worker, of any;
    0 where the system does not tell."""


def build_cache(
    data: Data,
    cache: Path,
    config: Config,
    *,
    workers: int,
    progress: Progress,
    limit: int | None = None,
    fresh: bool = False,
    index_only: bool = False,
    pool: WorkerPool | None = None,
) -> BuildReport:
    """Build the cache of a corpus or bring it up to date; `pool` may have been started before.

    index_only: without mels; the records name the wavs.
    """
    request = make_request(
        data, cache, config, workers=workers, limit=limit, fresh=fresh, index_only=index_only
    )  # fmt: skip
    return run_build(request, progress, pool)


def run_build(request: Request, progress: Progress, pool: WorkerPool | None = None) -> BuildReport:
    """Do what a checked request asks for."""
    started, cache, config = time.monotonic(), request.cache, request.config
    with disk_errors_explained(cache):
        cache.mkdir(parents=True, exist_ok=True)
        with exclusive(cache), pool or WorkerPool(request.workers) as pool:
            staging = StagingArea(cache)
            staging.open(fresh=request.fresh)
            found = survey(request, staging, pool, progress)
            for line in found.changes:
                progress.say(line)
            finished = _write_missing(request, found, staging, pool, progress)
            rows = gather(found.rows, finished)
            check_rejects(rows, config, request.corpora.name)
            if found.front_end.index_only:
                rows = measure_sample(rows, found.front_end, config.split.seed, pool, progress)
            pool.finish()
            weights = request.corpora.weights
            spec, index = describe(rows, found.plan, finished, config, found.front_end, weights=weights)
            changed = commit(cache, staging, spec, index, found.front_end.tokenizer)
    return BuildReport(
        spec=spec,
        rejected=Counter(row.rejection.reason for row in rows if isinstance(row, Rejected)),
        letters=found.letters,
        unnormalised=sum(not row.clip.normalised for row in rows),
        padding_efficiency=_fills(rows, spec),
        kept_shards=len(found.finished),
        written_shards=len(found.missing),
        changed=changed,
        wall_seconds=time.monotonic() - started,
        peak_bytes=peak_resident_bytes(workers=request.workers),
    )


def _fills(rows: list[IndexRow], spec: CacheSpec) -> list[float]:
    useful, clips = [0] * len(spec.buckets), [0] * len(spec.buckets)
    for row in rows:
        if isinstance(row, Kept):
            useful[row.place.bucket] += row.audio.mel_length
            clips[row.place.bucket] += 1
    if not spec.fixed_length:
        return [1.0] * len(spec.buckets)
    return [u / max(1, n * bucket.frames) for u, n, bucket in zip(useful, clips, spec.buckets, strict=True)]


def explain_build(request: Request, progress: Progress) -> None:
    """Say what `build_cache` would do, and do nothing."""
    with ExitStack() as stack:
        stack.enter_context(disk_errors_explained(request.cache))
        if request.cache.is_dir():
            stack.enter_context(exclusive(request.cache))
        pool = stack.enter_context(WorkerPool(request.workers))
        for line in survey(request, StagingArea(request.cache), pool, progress).changes:
            progress.say(line)


def _write_missing(
    request: Request, found: Survey, staging: StagingArea, pool: WorkerPool, progress: Progress
) -> dict[str, Finished]:
    """Write every shard that is not there yet, the largest first so that no worker is left alone at the end."""
    shapes, finished = found.plan.shapes, dict(found.finished)
    sizes = {s.file: stored_bytes(s.clips, shapes[s.place.bucket], request.config) for s in found.missing}
    clips = [clip for shard in found.missing for clip in shard.clips]
    plans = {shard.file: shard for shard in found.missing}
    ordered = sorted(found.missing, key=lambda shard: (-sizes[shard.file], shard.file))
    fetch = plan_fetch((row for row in clips if row.clip.id not in found.stored), found.front_end, staging.parts)
    check_free_space(request.cache, sum(sizes.values()) + fetch.bytes)
    with fetched_audio(fetch, found.front_end, pool, progress) as fetched:
        progress.start("features", len(clips), sum(clip.audio.seconds for clip in clips))
        for result in pool.run(partial(write_shard, found.front_end), _tasks(ordered, found, fetched, staging)):
            shard = plans[result.file]
            found_out = zip(shard.clips, result.outcomes, result.qualities, strict=True)
            rows = [written_row(clip, shard.place, outcome, quality) for clip, outcome, quality in found_out]
            finished[result.file] = staging.stage(result, rows, found.settings[result.file])
            progress.advance(len(rows), sum(clip.audio.seconds for clip in shard.clips))
    return finished


def _tasks(
    missing: list[ShardPlan], found: Survey, fetched: Mapping[str, Fetched], staging: StagingArea
) -> Iterator[ShardTask]:
    for shard in missing:
        yield ShardTask(
            file=shard.file,
            path=staging.part(shard.file),
            shape=found.plan.shapes[shard.place.bucket],
            clips=shard.clips,
            stored={row.clip.id: found.stored[row.clip.id] for row in shard.clips if row.clip.id in found.stored},
            fetched={row.clip.id: fetched[row.clip.id] for row in shard.clips if row.clip.id in fetched},
        )
