"""Write: make the missing shards in workers, from audio files to framed records."""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from xtts.precompute.corpus.record_recipe import RecordRecipe
from xtts.precompute.features.cached_mels import StoredClips, StoredMel
from xtts.precompute.features.clip_features import crop_audio, mel_sums, read_mel
from xtts.precompute.features.mel_check import check_mel
from xtts.precompute.features.tables import pack, unpack
from xtts.precompute.pipeline.plan import Plan, ShardPlan, stored_bytes
from xtts.precompute.pipeline.previous import Reusable
from xtts.precompute.pipeline.staging import Finished, StagingArea, rows_beside, write_rows
from xtts.precompute.workers.disks import attempt_path, check_free_space
from xtts.precompute.workers.worker_pool import Progress, WorkerPool
from xtts.shared.audio.decode import AudioProblem
from xtts.shared.audio.mel import FEATURE_VERSION
from xtts.shared.audio.signal_quality import SignalQuality
from xtts.shared.cache.bucket_shapes import BucketShape
from xtts.shared.cache.cache_spec import Shard, digest_of, with_digest, without_digest
from xtts.shared.cache.clip_index import KEPT, IndexRow, rows_of
from xtts.shared.cache.records import CropAudio, Record, frame
from xtts.shared.cache.shard_reader import RecordReader
from xtts.shared.system import atomic_files


@dataclass(frozen=True, kw_only=True)
class MissingShard:
    """A shard that has to be written."""

    plan: ShardPlan
    shape: BucketShape
    speakers: Mapping[str, int]
    """Named speakers of its clips, and their ids; a clip without one has id 0."""
    settings: str
    """Digest of everything but the clips that decides its bytes."""
    stored: StoredClips
    """Clips of the shard whose mels the previous cache holds."""


_Task = tuple[MissingShard, Path, bytes, bool]
"""(shard, path beside which each attempt writes under a name of its own, rows of its clips from the scan as a packed
table, whether to sync what is written: nobody else can if workers are on other machines)."""


def write_shard(recipe: RecordRecipe, task: _Task) -> Path:
    """Write the records of a shard, then its rows (runs in a worker); return the file.

    Clip by clip, so that memory does not grow with the shard. Raises `LockstepError` if the path has no folder.
    """
    shard, beside, packed, sync = task
    path, digest, records, rows = attempt_path(beside), hashlib.sha256(), 0, list[IndexRow]()
    clips, stored = rows_of(unpack(packed)), shard.stored.by_position()
    if len(stored) < len(clips):
        check_mel(recipe)
    mels = RecordReader(mel_dtype=recipe.config.shards.mel_dtype, mel_channels=recipe.profile.mel_channels)
    with path.open("wb") as out:
        for i, row in enumerate(clips):
            row = replace(row, split=shard.plan.id.split, bucket=shard.plan.id.bucket, shard=shard.plan.id.shard)
            try:
                record, audio_sha256, sums, quality = _features(row, shard, mels, recipe, stored.get(i))
            except AudioProblem as problem:
                rows.append(replace(row, quality=None).rejected(problem.reason, problem.detail))
                continue
            payload = record.to_example()
            framed = frame(payload)
            digest.update(framed)
            out.write(framed)
            rows.append(
                replace(
                    row, status=KEPT, position=records, record_sha256=hashlib.sha256(payload).hexdigest(),
                    audio_sha256=audio_sha256, mel_sum=sums[0], mel_square_sum=sums[1], quality=quality or row.quality,
                )
            )
            records += 1
        size = out.tell()
    written = Shard(
        file=with_digest(shard.plan.file, digest.hexdigest()), records=records, bytes=size, sha256=digest.hexdigest(),
        settings=shard.settings,
    )
    finished = Finished(shard=written, clips=hashlib.sha256(packed).hexdigest())
    write_rows(path, finished, rows)
    for file in (path, rows_beside(path)) if sync else ():
        atomic_files.sync_file(file)
    return path


def _features(
    row: IndexRow, shard: MissingShard, mels: RecordReader, recipe: RecordRecipe, stored: StoredMel | None
) -> tuple[Record, str, tuple[float, float], SignalQuality | None]:
    """Return a clip's record, the digest of its audio, the sums of its mel, and its quality if audio was decoded."""
    if stored is not None:
        record = mels.read(stored.path, stored.position, row.clip.id)
        return _record(row, record.unpadded_mel, shard, recipe, record.crop), stored.audio_sha256, stored.sums, None
    mel, samples, audio = read_mel(row, recipe)
    sums = mel_sums(mel)
    if not math.isfinite(sums[1]):
        raise AudioProblem("non-finite mel", "the audio holds samples that are not numbers")
    crop = crop_audio(samples, shard.shape.frames, recipe.profile) if recipe.config.audio.crop_frames else None
    return _record(row, mel, shard, recipe, crop), audio.sha256, sums, audio.quality


def _record(
    row: IndexRow, mel: np.ndarray, shard: MissingShard, recipe: RecordRecipe, crop: CropAudio | None = None
) -> Record:
    profile, shape = recipe.profile, shard.shape
    padded_frames, padded_tokens = (
        (shape.frames, shape.tokens) if recipe.config.shapes.pad_to_fixed_length else (len(mel), row.token_length)
    )
    padded = np.full((padded_frames, profile.mel_channels), profile.silence, mel.dtype)
    padded[: len(mel)] = mel
    tokens = np.zeros(padded_tokens, np.int64)
    tokens[: row.token_length] = np.frombuffer(row.tokens, "<u2")
    return Record(
        clip_id=row.clip.id, tokens=tokens, mel=padded, token_length=row.token_length, mel_length=len(mel),
        speaker=shard.speakers.get(row.clip.speaker, 0),
        language=recipe.tokenizer.languages.index(row.clip.language or recipe.config.text.language),
        crop=crop,
    )


@dataclass(frozen=True, kw_only=True)
class ShardWork:
    """Work of a build: the plan and its sources, finished shards by file without digest, and missing ones."""

    plan: Plan
    clips: pa.Table
    """All clips after the scan, with the columns of an index."""
    recipe: RecordRecipe
    reusable: Reusable
    staged: Mapping[str, Shard]
    """Shards that an interrupted build left."""
    reused: Mapping[str, Shard]
    """Shards of the previous cache."""
    missing: list[MissingShard]


def find_missing(
    plan: Plan, clips: pa.Table, recipe: RecordRecipe, staged: Mapping[str, Finished], reusable: Reusable
) -> ShardWork:
    """Separate finished shards from missing ones; staged shards are newer than those of the previous cache."""
    left, reused, missing = dict[str, Shard](), dict[str, Shard](), list[MissingShard]()
    for shard in plan.shards:
        shape, speakers = plan.shapes[shard.id.bucket], plan.speakers_of(shard)
        settings = _settings_digest(recipe, shape, speakers)
        if shard.file in staged:
            done, group = staged[shard.file].holding(clips.take(shard.clips), settings), left
        else:
            done, group = reusable.finished(shard, settings), reused
        if done is not None:
            group[shard.file] = done
        else:
            stored = reusable.stored_mels(shard)
            missing.append(MissingShard(plan=shard, shape=shape, speakers=speakers, settings=settings, stored=stored))
    return ShardWork(
        plan=plan, clips=clips, recipe=recipe, reusable=reusable, staged=left, reused=reused, missing=missing
    )


def _settings_digest(recipe: RecordRecipe, shape: BucketShape, speakers: Mapping[str, int]) -> str:
    """Digest of everything but the clips that decides a shard's bytes."""
    features = recipe.features
    return digest_of(
        {
            "feature_version": FEATURE_VERSION, "mel_check": recipe.mel_check,
            "audio": features["audio"], "mel_dtype": features["shards"]["mel_dtype"], "speakers": dict(speakers),
            "text": {**features["text"], "max_unknown_share": None},  # it decides whether shards are written
            "tokenizer": recipe.tokenizer.sha256,
            "shape": [shape.tokens, shape.frames] if recipe.config.shapes.pad_to_fixed_length else None,
        }
    )


def write_missing(work: ShardWork, staging: StagingArea, pool: WorkerPool, progress: Progress) -> dict[str, Shard]:
    """Write the missing shards, the largest first so that no worker is left alone at the end.

    Returns them by file without digest.
    """
    config, missing = work.recipe.config, {shard.plan.file: shard for shard in work.missing}
    clips = {file: shard.plan.clips for file, shard in missing.items()}
    frames = {file: int(work.plan.columns.frames[own].sum()) for file, own in clips.items()}
    sizes = {file: stored_bytes(len(own), frames[file], missing[file].shape, config) for file, own in clips.items()}
    check_free_space(staging.cache, sum(sizes.values()))
    progress.start("features", sum(map(len, clips.values())))
    tasks = (
        (missing[file], staging.scratch / file.replace("/", "-"), pack(work.clips.take(own)), pool.spans_machines)
        for file, own in sorted(clips.items(), key=lambda item: (-sizes[item[0]], item[0]))
    )
    written = dict[str, Shard]()
    for path in pool.run(partial(write_shard, work.recipe), tasks):
        shard = staging.stage(path, from_elsewhere=pool.spans_machines)
        file = without_digest(shard.file)
        written[file] = shard
        progress.advance(len(clips[file]), work.recipe.profile.seconds(frames[file]))
    return written
