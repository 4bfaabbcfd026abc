"""Stage 1 from corpus to cache: survey, write what is missing, commit."""

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from xtts.precompute.build.audio_index import measure_sample
from xtts.precompute.build.build_request import Request, make_request
from xtts.precompute.build.commit import commit, describe, sweep
from xtts.precompute.build.index_rows import ShardRows, write_index
from xtts.precompute.build.remote_cache import DAY_SECONDS, RemoteCache
from xtts.precompute.build.scanning import seconds_of
from xtts.precompute.build.shard_plan import Plan, ShardPlan
from xtts.precompute.build.staging import StagingArea
from xtts.precompute.build.survey import Survey, survey
from xtts.precompute.corpus.corpus_entries import Data
from xtts.precompute.features.extract import ShardResult, ShardTask, write_shard
from xtts.precompute.features.finished_shard import Finished
from xtts.precompute.features.gathered_rows import Gathered, GatherTask, gather_shard
from xtts.precompute.workers.engine import Engine
from xtts.precompute.workers.open_engine import open_engine
from xtts.precompute.workers.parts import beside
from xtts.precompute.workers.progress import Progress
from xtts.precompute.workers.stopping import check_free_space, disk_errors_explained
from xtts.shared.cache.cache_spec import INDEX_FILE, CacheSpec, load_spec
from xtts.shared.config import Config
from xtts.shared.errors import LockstepError
from xtts.shared.storage.failures import called
from xtts.shared.storage.urls import Location
from xtts.shared.system.folder_lock import ReadLock, exclusive
from xtts.shared.system.peak_memory import peak_resident_bytes
from xtts.shared.text.letter_counts import LetterCounts

_AT_ONCE = 4
"""Shards for each worker that are on the disk at once where they are sent to an object store."""


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
    cache: Location,
    config: Config,
    *,
    workers: int,
    progress: Progress,
    limit: int | None = None,
    fresh: bool = False,
    index_only: bool = False,
    ray_address: str | None = None,
    keep_days: float = 1.0,
    pool: Engine | None = None,
) -> BuildReport:
    """Build the cache of a corpus or bring it up to date; `pool` may have been started before.

    index_only: without mels; the records name the wavs. keep_days: how long an object store keeps replaced files.
    """
    with pool or open_engine(workers, ray_address) as engine:
        request = make_request(
            data, cache, config, workers=workers, limit=limit, fresh=fresh, index_only=index_only,
            ray_address=ray_address, keep_days=keep_days, pool=engine,
        )  # fmt: skip
        return run_build(request, progress, engine)


def run_build(request: Request, progress: Progress, pool: Engine | None = None) -> BuildReport:
    """Do what a checked request asks for."""
    started, cache, config = time.monotonic(), request.cache, request.config
    with disk_errors_explained(cache), ExitStack() as stack:
        cache.mkdir(parents=True, exist_ok=True)
        stack.enter_context(exclusive(cache))
        remote, before = _remote(request, stack)
        with pool or request.open_engine() as pool:
            staging = StagingArea(cache, remote=remote)
            staging.open(fresh=request.fresh)
            found = survey(request, staging, pool, progress)
            for line in found.changes:
                progress.say(line)
            finished, rows = _write_missing(request, found, staging, pool, progress)
            rows |= _gather_kept(found, staging, request.engine_for_rows(pool))
            found.ledger.check_rejects(config, request.corpora.name, request.corpora.roots)
            sample = None
            if found.front_end.index_only:
                sample = measure_sample(found.plan, found.ledger, found.front_end, pool, progress)
            pool.finish()
            index = staging.parts / INDEX_FILE
            figures = write_index(index, found.plan, found.ledger, rows, sample)
            weights = request.corpora.weights
            spec = describe(index, figures, found.plan, finished, config, found.front_end, weights=weights)
            changed = commit(cache, staging, spec, index, found.front_end.tokenizer)
            left = sweep(cache, spec)
            if remote is not None:
                remote.sweep(before, spec)
            if left:
                progress.say(f"{left} replaced files stay while another process reads the cache; a later build goes on")
    return BuildReport(
        spec=spec,
        rejected=found.ledger.rejections(),
        letters=found.scan.letters,
        unnormalised=found.scan.unnormalised,
        padding_efficiency=_fills(found.plan, spec),
        kept_shards=len(found.ready),
        written_shards=len(found.missing),
        changed=changed,
        wall_seconds=time.monotonic() - started,
        peak_bytes=0 if pool.spans_machines else peak_resident_bytes(workers=request.workers),
    )


def _remote(request: Request, stack: ExitStack) -> tuple[RemoteCache | None, CacheSpec | None]:
    """(the cache in an object store that is built, its `cache.json` of before), where it is one."""
    if request.remote is None:
        return None, None
    keep_seconds = request.keep_days * DAY_SECONDS
    remote = stack.enter_context(RemoteCache(request.remote, request.cache, keep_seconds=keep_seconds))
    stack.enter_context(called(request.cache, str(request.remote)))
    remote.mirror()
    with suppress(LockstepError):
        return remote, load_spec(request.cache)
    return remote, None


def _fills(plan: Plan, spec: CacheSpec) -> list[float]:
    useful, clips = plan.kept_frames()
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
        parts = stack.enter_context(TemporaryDirectory(dir=beside(request.cache)))
        remote, _ = _remote(request, stack)
        staging = StagingArea(request.cache, Path(parts), remote)
        for line in survey(request, staging, pool, progress).changes:
            progress.say(line)


def _write_missing(
    request: Request, found: Survey, staging: StagingArea, pool: Engine, progress: Progress
) -> tuple[dict[str, Finished], dict[str, ShardRows]]:
    """Write every shard that is not there yet, the largest first so that no worker is left alone at the end.

    All finished shards, and the rows of the new ones.
    """
    finished, rows = {file: ready.done for file, ready in found.ready.items()}, dict[str, ShardRows]()
    sizes = {shard.file: found.plan.bytes_of(shard, request.config) for shard in found.missing}
    plans = {shard.file: shard for shard in found.missing}
    ordered = sorted(found.missing, key=lambda shard: (-sizes[shard.file], shard.file))
    stay = sizes.values() if staging.remote is None else sorted(sizes.values())[-_AT_ONCE * max(1, request.workers) :]
    check_free_space(request.cache, sum(stay))
    ledger, seconds = found.ledger, partial(seconds_of, profile=found.front_end.profile)
    frames = [ledger.columns.frames[shard.clips] for shard in found.missing]
    progress.start("features", sum(map(len, frames)), sum(map(seconds, frames)))
    tasks = _tasks(ordered, found, staging, sync=pool.spans_machines)
    for result in pool.run(partial(write_shard, found.front_end), tasks):
        clips = plans[result.file].clips
        finished[result.file] = staging.stage(result, from_elsewhere=pool.spans_machines)
        rows[result.file] = _note(found, clips, result, staging.sidecar(result.file))
        progress.advance(len(clips), seconds(ledger.columns.frames[clips]))
    return finished, rows


def _note(found: Survey, clips: np.ndarray, result: ShardResult | Gathered, path: Path) -> ShardRows:
    """Reject the clips that a shard does without; where the rows of all of them are."""
    found.ledger.columns.reason[clips[result.rejected]] = result.reasons
    return ShardRows(path=path, rejected=len(result.rejected) > 0)


def _gather_kept(found: Survey, staging: StagingArea, pool: Engine) -> dict[str, ShardRows]:
    """The rows of the shards that need not be written."""
    clips = {shard.file: shard.clips for shard in found.plan.shards if shard.file in found.ready}
    tasks = (
        GatherTask(
            number=number, file=file, clips=found.ledger.spots(numbers),
            earlier=found.ready[file].earlier.spots(found.ready[file].rows),
        )
        for number, (file, numbers) in enumerate(clips.items())
    )  # fmt: skip
    gathered = pool.run(partial(gather_shard, staging.parts), tasks)
    return {one.file: _note(found, clips[one.file], one, one.path) for one in gathered}


def _tasks(missing: list[ShardPlan], found: Survey, staging: StagingArea, *, sync: bool) -> Iterator[ShardTask]:
    for shard in missing:
        yield ShardTask(
            file=shard.file,
            path=staging.part(shard.file),
            settings=found.settings[shard.file],
            place=shard.place,
            shape=found.plan.shapes[shard.place.bucket],
            clips=found.ledger.spots(shard.clips),
            parts=staging.parts,
            speakers=found.plan.speakers_of(shard),
            stored=found.stored.of(shard),
            sync=sync,
        )
