"""Stage 1 from corpus to cache: survey, write what is missing, commit."""

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from xtts.precompute.build.audio_index import measure_sample
from xtts.precompute.build.build_request import Request, make_request
from xtts.precompute.build.commit import commit, describe, sweep
from xtts.precompute.build.ledger import check_rejects, gather
from xtts.precompute.build.shard_plan import ShardPlan
from xtts.precompute.build.staging import StagingArea
from xtts.precompute.build.survey import Survey, rows_of, survey
from xtts.precompute.corpus.corpus_entries import Data
from xtts.precompute.features.extract import ShardTask, write_shard
from xtts.precompute.features.fetch import Fetched, fetched_audio, plan_fetch
from xtts.precompute.features.finished_shard import Finished
from xtts.precompute.features.scan import Scanned
from xtts.precompute.workers.engine import Engine
from xtts.precompute.workers.progress import Progress
from xtts.precompute.workers.stopping import check_free_space, disk_errors_explained
from xtts.shared.cache.cache_spec import CacheSpec
from xtts.shared.cache.clip_index import IndexRow, Kept, Rejected
from xtts.shared.config import Config
from xtts.shared.system.folder_lock import ReadLock, exclusive
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
    0 where the system does not tell, and where workers were on other machines."""


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
    ray_address: str | None = None,
    pool: Engine | None = None,
) -> BuildReport:
    """Build the cache of a corpus or bring it up to date; `pool` may have been started before.

    index_only: without mels; the records name the wavs.
    """
    request = make_request(
        data, cache, config, workers=workers, limit=limit, fresh=fresh, index_only=index_only, ray_address=ray_address
    )
    return run_build(request, progress, pool)


def run_build(request: Request, progress: Progress, pool: Engine | None = None) -> BuildReport:
    """Do what a checked request asks for."""
    started, cache, config = time.monotonic(), request.cache, request.config
    with disk_errors_explained(cache):
        cache.mkdir(parents=True, exist_ok=True)
        with exclusive(cache), pool or request.open_engine() as pool:
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
            left = sweep(cache, spec)
            if left:
                progress.say(f"{left} replaced files stay while another process reads the cache; a later build goes on")
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
        peak_bytes=0 if pool.spans_machines else peak_resident_bytes(workers=request.workers),
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
            stack.enter_context(ReadLock(request.cache))
        pool = stack.enter_context(request.open_engine())
        for line in survey(request, StagingArea(request.cache), pool, progress).changes:
            progress.say(line)


def _write_missing(
    request: Request, found: Survey, staging: StagingArea, pool: Engine, progress: Progress
) -> dict[str, Finished]:
    """Write every shard that is not there yet, the largest first so that no worker is left alone at the end."""
    finished = dict(found.finished)
    sizes = {shard.file: found.plan.bytes_of(shard, request.config) for shard in found.missing}
    members = {shard.file: rows_of(shard, found.rows) for shard in found.missing}
    clips = [clip for rows in members.values() for clip in rows]
    ordered = sorted(found.missing, key=lambda shard: (-sizes[shard.file], shard.file))
    new = (row for row in clips if row.clip.id not in found.stored)
    fetch = plan_fetch(new, found.front_end, staging.parts / "audio")
    check_free_space(request.cache, sum(sizes.values()) + fetch.bytes)
    with fetched_audio(fetch, found.front_end, pool, progress) as fetched:
        progress.start("features", len(clips), sum(clip.audio.seconds for clip in clips))
        tasks = _tasks(ordered, members, found, fetched, staging, sync=pool.spans_machines)
        for result in pool.run(partial(write_shard, found.front_end), tasks):
            rows = members[result.file]
            finished[result.file] = staging.stage(result, rows, from_elsewhere=pool.spans_machines)
            progress.advance(len(rows), sum(clip.audio.seconds for clip in rows))
    return finished


def _tasks(
    missing: list[ShardPlan], members: Mapping[str, list[Scanned]], found: Survey, fetched: Mapping[str, Fetched],
    staging: StagingArea, *, sync: bool,
) -> Iterator[ShardTask]:  # fmt: skip
    for shard in missing:
        clips = members[shard.file]
        yield ShardTask(
            file=shard.file,
            path=staging.part(shard.file),
            settings=found.settings[shard.file],
            place=shard.place,
            shape=found.plan.shapes[shard.place.bucket],
            clips=clips,
            speakers=found.plan.speakers_of(shard),
            stored={row.clip.id: found.stored[row.clip.id] for row in clips if row.clip.id in found.stored},
            fetched={row.clip.id: fetched[row.clip.id] for row in clips if row.clip.id in fetched},
            sync=sync,
        )
