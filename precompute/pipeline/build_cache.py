"""Stage 1 from corpus to cache: scan, plan, write, index, commit."""

import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa

from xtts.precompute.features.filters import check_rejects, reject_lines
from xtts.precompute.features.letter_counts import LetterCounts
from xtts.precompute.features.mel_check import compute_mel_check
from xtts.precompute.features.recording_advice import read_quality
from xtts.precompute.features.tables import counted, with_status
from xtts.precompute.pipeline.build_request import BuildRequest
from xtts.precompute.pipeline.changes import change_lines
from xtts.precompute.pipeline.commit import commit, make_spec, sweep
from xtts.precompute.pipeline.index import write_index
from xtts.precompute.pipeline.plan import ShardPlan, plan_cache, plan_columns
from xtts.precompute.pipeline.previous import find_reusable
from xtts.precompute.pipeline.scan import scan_clips
from xtts.precompute.pipeline.staging import StagingArea
from xtts.precompute.pipeline.voices import embed_speakers
from xtts.precompute.pipeline.write import ShardWork, find_missing, write_missing
from xtts.precompute.workers.disks import beside, disk_errors_explained
from xtts.precompute.workers.worker_pool import Progress, WorkerPool
from xtts.shared.cache.cache_spec import INDEX_FILE, CacheSpec
from xtts.shared.cache.clip_index import REJECTED
from xtts.shared.system.folder_lock import ReadLock, exclusive
from xtts.shared.system.machine import peak_resident_bytes


@dataclass(frozen=True, kw_only=True)
class BuildReport:
    """Result of a build."""

    spec: CacheSpec
    rejected: Mapping[str, int]
    """Reason to clips."""
    reject_lines: list[str]
    """Result of `reject_lines`."""
    letters: list[LetterCounts]
    """Letter counts of each language."""
    clips: pa.Table
    """All clips after the scan, rejected ones included, with the columns of an index."""
    quality: pa.Table
    """Quality of the kept clips, as from `read_quality`."""
    fill: list[float]
    """Useful frames / stored frames of each bucket."""
    kept_shards: int
    written_shards: int
    changed: bool
    """False if the cache was already up to date."""
    wall_seconds: float
    peak_bytes: int
    """Upper bound of the memory used at once: the largest resident size of this process plus, per worker, that of any
    worker; 0 if workers were on other machines."""


def run_build(request: BuildRequest, pool: WorkerPool, progress: Progress) -> BuildReport:
    """Build or update a cache; the processes of `pool` end with it."""
    started, cache = time.monotonic(), request.cache
    with disk_errors_explained(cache):
        cache.mkdir(parents=True, exist_ok=True)
        with exclusive(cache), pool:
            staging = StagingArea(cache)
            staging.open(fresh=request.fresh)
            work, letters = _scan_and_plan(request, staging, pool, progress)
            plan, clips, recipe, reusable = work.plan, work.clips, work.recipe, work.reusable
            written = write_missing(work, staging, pool, progress)
            finished = {**work.staged, **work.reused, **written}

            def rows_of(shard: ShardPlan) -> pa.Table:
                reused = shard.file in work.reused
                return reusable.rows_of(shard, clips.take(shard.clips)) if reused else staging.rows(shard.file)

            rejected = with_status(REJECTED, chain([clips], map(rows_of, plan.shards)))
            check_rejects(rejected, request.corpora.name, recipe, of=len(clips))
            index = staging.scratch / INDEX_FILE
            statistics, fill = write_index(index, plan, rows_of, rejected, recipe.config)
            voices = None
            if recipe.config.model.voice_from == "recording":
                people, earlier = list(plan.speakers), request.previous.spec
                voices = embed_speakers(index, people, recipe, cache, earlier, staging, pool, progress)
            spec = make_spec(index, statistics, plan, finished, recipe, request.corpora.weights, voices)
            changed = commit(cache, staging, spec, index, recipe.tokenizer)
            quality = read_quality(cache / spec.index_file)
            if left := sweep(cache, spec):
                progress.say(f"{left} old files kept: the cache is in use; a later build removes them")
    return BuildReport(
        spec=spec, rejected=counted(rejected["reason"]), reject_lines=reject_lines(rejected), letters=letters,
        clips=clips, quality=quality,
        fill=fill, changed=changed,
        kept_shards=len(finished) - len(written), written_shards=len(written), wall_seconds=time.monotonic() - started,
        peak_bytes=0 if pool.spans_machines else peak_resident_bytes(workers=pool.workers),
    )


def explain_build(request: BuildRequest, pool: WorkerPool, progress: Progress) -> None:
    """Report what `run_build` would do, and write nothing."""
    with ExitStack() as stack:
        stack.enter_context(disk_errors_explained(request.cache))
        if request.cache.is_dir():
            stack.enter_context(ReadLock(request.cache))
        stack.enter_context(pool)
        scratch = stack.enter_context(TemporaryDirectory(dir=beside(request.cache)))
        _scan_and_plan(request, StagingArea(request.cache, Path(scratch)), pool, progress)


def _scan_and_plan(
    request: BuildRequest, staging: StagingArea, pool: WorkerPool, progress: Progress
) -> tuple[ShardWork, list[LetterCounts]]:
    """Find what has to be done, and report it; nothing is written but audio that has to be unpacked.

    Returns the work, and the letters of each language.
    """
    recipe = replace(request.recipe, unpacked=staging.scratch)
    config = recipe.config
    previous, staged = request.previous, {} if request.fresh else staging.finished(request.exclude)
    reusable = find_reusable(previous, request.corpora.clips, recipe, request.exclude)
    clips, unchanged, letters = scan_clips(request.corpora.clips, recipe, reusable, pool, progress)
    reusable = replace(reusable, unchanged=unchanged)
    check_rejects(with_status(REJECTED, [clips]), request.corpora.name, recipe, of=len(clips))
    plan = plan_cache(plan_columns(clips, config.split.seed), config, previous.plan(recipe.features))
    if previous.spec and reusable.same_audio:
        mel_check = previous.spec.mel_check
    else:
        mel_check = next(iter(pool.run(compute_mel_check, [recipe])))
    recipe = replace(recipe, mel_check=mel_check)
    work = find_missing(plan, clips, recipe, staged, reusable)
    for line in (*request.corpora.notes, *change_lines(work, staged.values())):
        progress.say(line)
    return work, letters
