"""Mending a cache: exactly the broken files are made again, to the bytes that `cache.json` promises."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from xtts.precompute.build.build_cache import run_build
from xtts.precompute.build.build_request import BuildRequest
from xtts.precompute.build.index_rows import write_index
from xtts.precompute.build.rejections import rejected_clips
from xtts.precompute.build.shard_plan import previous_plan
from xtts.precompute.build.staging import StagingArea, file_sha256
from xtts.precompute.build.survey import scan_and_plan
from xtts.precompute.check.against_corpus import cache_request, check_corpus
from xtts.precompute.check.verify import CacheFinding
from xtts.precompute.corpus.clip_audio import audio_digest
from xtts.precompute.corpus.corpus_entries import Data
from xtts.precompute.corpus.feature_extractor import FeatureExtractor
from xtts.precompute.features.cached_mels import StoredMels
from xtts.precompute.features.extract import measure, mel_of, mel_sums, placed, unfit, written
from xtts.precompute.features.tables import pack, take, unpack
from xtts.precompute.workers.progress import Progress
from xtts.precompute.workers.shared_folders import check_visible
from xtts.shared.audio.decode import AudioProblem
from xtts.shared.cache.cache_spec import INDEX_FILE, CacheSpec, load_spec, shard_places
from xtts.shared.cache.clip_index import IndexRow, ShardPlace, rows_of, table_of
from xtts.shared.cache.records import CorruptRecord, Record
from xtts.shared.cache.shard_reader import read_shard
from xtts.shared.errors import LockstepError, build_command
from xtts.shared.system import atomic_files
from xtts.shared.system.folder_lock import exclusive


def repair_cache(
    cache: Path, data: Data, findings: Iterable[CacheFinding], *, workers: int, progress: Progress,
    ray_address: str | None = None,
) -> None:  # fmt: skip
    """Make the files again that `findings` names, from the corpus as it was; a `LockstepError` when it has changed."""
    spec = load_spec(cache)
    request = cache_request(cache, spec, data, workers=workers, limit=spec.index_rows, ray_address=ray_address)
    broken = {finding.file for finding in findings}
    if spec.index_file in broken:
        _recover_index(cache, spec, request, progress)
    changed = check_corpus(cache, request)
    if changed:
        found = f"{len(changed)} clips changed since the cache was built, the first is {changed[0].where}"
        raise LockstepError(request.corpora.name, found=found, fix=build_command(cache), exit_code=1)
    run_build(replace(request, exclude=frozenset(broken)), progress)


def _recover_index(cache: Path, spec: CacheSpec, request: BuildRequest, progress: Progress) -> None:
    """Write the index again from a scan of the corpus and the records themselves."""
    if spec.names_audio:  # a build from nothing takes seconds
        fix = f"{build_command(cache, fresh=True)} --index-only"
        raise LockstepError(str(cache / spec.index_file), found="damaged", fix=fix, exit_code=1)
    staging = StagingArea(cache)
    with exclusive(cache), request.open_engine() as pool, staging.scratch_alone():
        clips, plan = scan_and_plan(request, previous_plan(spec), staging, pool, progress)
        # In workers, as when they were written: a sum by several threads has other last digits.
        tasks = ((shard.place, shard.file, pack(take(clips, shard.clips))) for shard in plan.shards)
        extractor = replace(request.extractor, unpacked=staging.scratch)
        recovered = dict(pool.run(partial(_recover_rows, cache.absolute(), spec, extractor), tasks))
        index = staging.scratch / INDEX_FILE
        rejected = rejected_clips(clips, *(unpack(recovered[shard.file]) for shard in plan.shards))
        write_index(index, plan, lambda shard: unpack(recovered[shard.file]), rejected)
        if file_sha256(index) != spec.index_sha256:
            found = "cannot be made again to the same bytes: the corpus or a shard has changed"
            where = str(cache / spec.index_file)
            raise LockstepError(where, found=found, fix=build_command(cache, fresh=True), exit_code=1)
        atomic_files.sync_file(index)
        atomic_files.move(index, cache / spec.index_file)


def _recover_rows(
    cache: Path, spec: CacheSpec, extractor: FeatureExtractor, task: tuple[ShardPlace, str, bytes]
) -> tuple[str, bytes]:
    """The rows of a shard as the index had them, by the shard's file in the plan."""
    check_visible(cache)
    place, slot, packed = task
    path, rows = cache / shard_places(spec).get(place, slot), list[IndexRow]()
    records = dict(_read_records(path, spec, place.bucket))
    mels = StoredMels(mel_dtype=spec.mel_dtype, mel_channels=spec.mel_channels)
    for row in (placed(row, place) for row in rows_of(unpack(packed))):
        if row.clip.id in records:
            position, payload, record = records[row.clip.id]
            sums, quality = mel_sums(record.mel[: record.mel_length]), measure(row, extractor)
            rows.append(written(row, position, payload, audio_digest(row.clip, extractor), sums, quality))
            continue
        try:
            mel_of(row, None, mels, extractor)
        except AudioProblem as problem:
            rows.append(unfit(row, problem))
        else:
            found = f"no record of {row.clip.id}"
            raise LockstepError(str(path), found=found, fix=build_command(cache, fresh=True), exit_code=1)
    return slot, pack(table_of(rows))


def _read_records(path: Path, spec: CacheSpec, bucket: int) -> Iterator[tuple[str, tuple[int, memoryview, Record]]]:
    try:
        for position, (payload, record) in enumerate(read_shard(path, spec, spec.buckets[bucket])):
            yield record.clip_id, (position, payload, record)
    except (OSError, CorruptRecord) as error:
        found, fix = f"unreadable as well as {spec.index_file} ({error})", build_command(path.parents[2], fresh=True)
        raise LockstepError(str(path), found=found, fix=fix, exit_code=1) from None
