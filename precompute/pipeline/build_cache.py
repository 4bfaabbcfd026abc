"""Stage 1 from corpus to cache: survey, write what is missing, commit."""

import time
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from xtts.precompute.features.extract import ShardTask, Sums, write_shard
from xtts.precompute.features.tables import counted, pack, read_table
from xtts.precompute.pipeline.audio_index import measure_sample
from xtts.precompute.pipeline.build_request import BuildRequest
from xtts.precompute.pipeline.commit import commit, describe, sweep
from xtts.precompute.pipeline.index_rows import with_sums, write_index
from xtts.precompute.pipeline.rejections import check_rejects, rejected_clips
from xtts.precompute.pipeline.remote_cache import RemoteCache
from xtts.precompute.pipeline.shard_plan import ShardPlan
from xtts.precompute.pipeline.staging import StagingArea
from xtts.precompute.pipeline.survey import Survey, survey
from xtts.precompute.workers.engine import Progress, TaskEngine
from xtts.precompute.workers.open_engine import open_engine
from xtts.precompute.workers.shared_folders import beside
from xtts.precompute.workers.stopping import check_free_space, disk_errors_explained
from xtts.shared.audio.decode import source_rate
from xtts.shared.cache.cache_spec import INDEX_FILE, CacheSpec, Shard, without_digest
from xtts.shared.storage.failures import rename_in_errors
from xtts.shared.system.folder_lock import ReadLock, exclusive
from xtts.shared.system.machine import peak_resident_bytes
from xtts.shared.text.letter_counts import LetterCounts

if TYPE_CHECKING:
    import pyarrow as pa


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
    speakers: Mapping[str, int]
    """Clips per speaker, rejected ones included, most frequent first; an empty name is that of nobody."""
    languages: Mapping[str, int]
    """Clips per language code, in the same order."""
    low_rates: Mapping[int, int]
    """Clips by the Hz of their files, where these are below the profile's."""
    padding_efficiency: list[float]
    """Useful frames / stored frames of each bucket."""
    kept_shards: int
    written_shards: int
    changed: bool
    """False when the cache was already up to date."""
    wall_seconds: float
    peak_bytes: int
    """Upper bound of the memory used at once: the largest resident size of this process and, per worker, of any;
    0 where workers were on other machines."""


def run_build(request: BuildRequest, progress: Progress, pool: TaskEngine | None = None) -> BuildReport:
    """Do what a checked request asks for; `pool` may have been started before."""
    started, cache, config = time.monotonic(), request.cache, request.config
    with disk_errors_explained(cache), ExitStack() as stack:
        cache.mkdir(parents=True, exist_ok=True)
        stack.enter_context(exclusive(cache))
        remote = _remote(request, stack)
        with pool or open_engine(request.workers, request.ray_address) as pool:
            staging = StagingArea(cache)
            staging.open(fresh=request.fresh)
            found = survey(request, staging, pool, progress)
            for line in found.changes:
                progress.say(line)
            finished = _write_missing(request, found, staging, pool, progress)
            rows = partial(_rows_of, found, staging)
            rejected = rejected_clips(found.clips, *map(rows, found.plan.shards))
            check_rejects(rejected, config, request.corpora.name, request.corpora.roots, of=len(found.clips))
            if found.extractor.index_only:
                sums = measure_sample(rows, found.plan, found.extractor, pool, progress)
                rows = partial(_rows_of, found, staging, sums=sums)
            index = staging.scratch / INDEX_FILE
            statistics, padding_efficiency = write_index(index, found.plan, rows, rejected, config)
            weights = request.corpora.weights
            spec = describe(index, statistics, found.plan, finished, config, found.extractor, weights=weights)
            changed = commit(cache, staging, spec, index, found.extractor.tokenizer, remote)
            left = sweep(cache, spec)
            if remote is not None:
                remote.sweep(found.previous.spec, spec)
            if left:
                progress.say(f"{left} replaced files stay while another process reads the cache; a later build goes on")
    return BuildReport(
        spec=spec,
        rejected=counted(rejected["reason"]),
        letters=found.letters,
        unnormalised=int((~found.clips["normalised"].to_numpy()).sum()),
        speakers=counted(found.clips["speaker"]),
        languages=counted(found.clips["language"]),
        low_rates=_low_rates(found.clips, found.extractor.profile.sample_rate),
        padding_efficiency=padding_efficiency,
        kept_shards=len(found.ready),
        written_shards=len(found.missing),
        changed=changed,
        wall_seconds=time.monotonic() - started,
        peak_bytes=0 if pool.spans_machines else peak_resident_bytes(workers=request.workers),
    )


def _remote(request: BuildRequest, stack: ExitStack) -> RemoteCache | None:
    """The cache in an object store that is built, after copying it into the local folder; None for a local one."""
    if request.remote is None:
        return None
    remote = RemoteCache(request.remote, request.cache)
    stack.enter_context(rename_in_errors(request.cache, str(request.remote)))
    remote.fetch(shards=True)
    return remote


def _low_rates(clips: "pa.Table", rate: int) -> dict[int, int]:
    rates = Counter[int]()
    for notes, count in counted(clips["notes"]).items():
        rates[source_rate(notes, rate)] += count
    return {hertz: count for hertz, count in rates.items() if hertz < rate}


def explain_build(request: BuildRequest, progress: Progress) -> None:
    """Say what `run_build` would do, and do nothing."""
    with ExitStack() as stack:
        stack.enter_context(disk_errors_explained(request.cache))
        if request.cache.is_dir():
            stack.enter_context(ReadLock(request.cache))
        pool = stack.enter_context(open_engine(request.workers, request.ray_address))
        scratch = stack.enter_context(TemporaryDirectory(dir=beside(request.cache)))
        _remote(request, stack)
        staging = StagingArea(request.cache, Path(scratch))
        for line in survey(request, staging, pool, progress).changes:
            progress.say(line)


def _write_missing(
    request: BuildRequest, found: Survey, staging: StagingArea, pool: TaskEngine, progress: Progress
) -> dict[str, Shard]:
    """Write every shard that is not there yet, the largest first so that no worker is left alone at the end.

    All finished shards, by file without digest.
    """
    finished = dict(found.ready)
    sizes = {shard.file: found.plan.bytes_of(shard, request.config) for shard in found.missing}
    ordered = sorted(found.missing, key=lambda shard: (-sizes[shard.file], shard.file))
    check_free_space(request.cache, sum(sizes.values()))
    frames = {shard.file: found.plan.columns.frames[shard.clips] for shard in found.missing}
    seconds = {file: found.extractor.profile.seconds(int(some.sum())) for file, some in frames.items()}
    progress.start("features", sum(map(len, frames.values())), sum(seconds.values()))
    tasks = (_task(shard, found, staging, sync=pool.spans_machines) for shard in ordered)
    for path in pool.run(partial(write_shard, found.extractor), tasks):
        shard = staging.stage(path, from_elsewhere=pool.spans_machines)
        file = without_digest(shard.file)
        finished[file] = shard
        progress.advance(len(frames[file]), seconds[file])
    return finished


def _task(shard: ShardPlan, found: Survey, staging: StagingArea, *, sync: bool) -> ShardTask:
    return ShardTask(
        file=shard.file,
        path=staging.part(shard.file),
        settings=found.settings[shard.file],
        place=shard.place,
        shape=found.plan.shapes[shard.place.bucket],
        rows=pack(found.clips.take(shard.clips)),
        speakers=found.plan.speakers_of(shard),
        stored=found.stored[shard.file],
        sync=sync,
    )


def _rows_of(
    found: Survey, staging: StagingArea, shard: ShardPlan, *, sums: Mapping[str, Sums] | None = None
) -> "pa.Table":
    """The rows of a shard's clips as the index has them: of today for a kept shard, or as a worker wrote them.

    sums: of a sample, where the cache has no mels.
    """
    if shard.file in found.ready and shard.file not in found.staged:
        rows = found.previous.rows_of(shard, found.clips.take(shard.clips))
    else:
        rows = read_table(staging.rows_path(shard.file)).replace_schema_metadata(None)
    return rows if sums is None else with_sums(rows, sums)
