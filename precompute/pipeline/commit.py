"""Commit: describe the cache, move new files to their paths, replace `cache.json`, remove old files.

A file has the digest of its content in its name and is never changed. So the one rename of `cache.json` is the commit:
a reader opens the complete old cache before it and the complete new one after it.
"""

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from xtts.precompute.corpus.record_recipe import RecordRecipe
from xtts.precompute.pipeline.plan import Plan
from xtts.precompute.pipeline.staging import StagingArea
from xtts.precompute.workers.arithmetic import installed_versions
from xtts.shared.audio.mel import FEATURE_VERSION
from xtts.shared.cache.cache_spec import (
    FORMAT_VERSION,
    INDEX_FILE,
    SPEC_FILE,
    TOKENIZER_FILE,
    Bucket,
    CacheSpec,
    Shard,
    Statistics,
    Voices,
    digest_of,
    replaced_files,
    spec_bytes,
    with_digest,
)
from xtts.shared.cache.quick_check import file_sha256
from xtts.shared.system import atomic_files
from xtts.shared.system.folder_lock import without_readers
from xtts.shared.text.tokenizer import Tokenizer


def make_spec(
    index: Path, statistics: Statistics, plan: Plan, finished: Mapping[str, Shard], recipe: RecordRecipe,
    weights: Mapping[str, float], voices: Voices | None,
) -> CacheSpec:
    """The contents of `cache.json`.

    index: the file that becomes the index; weights: corpus to its sampling weight, unless that is 1; voices: the
    file of `embed_speakers`, if there is one.
    """
    features, profile, config = recipe.features, recipe.profile, recipe.config
    tokenizer_sha256, index_sha256 = recipe.tokenizer.sha256, file_sha256(index)
    return CacheSpec(
        format_version=FORMAT_VERSION, fingerprint=digest_of(features), features=features, profile=asdict(profile),
        mel_dtype=config.shards.mel_dtype, mel_channels=profile.mel_channels,
        fixed_length=config.shapes.pad_to_fixed_length, vocabulary=recipe.tokenizer.size,
        tokenizer_sha256=tokenizer_sha256, index_sha256=index_sha256,
        index_rows=statistics.clips + statistics.rejected, index_file=with_digest(INDEX_FILE, index_sha256),
        tokenizer_file=with_digest(TOKENIZER_FILE, tokenizer_sha256), voices=voices, speakers=list(plan.speakers),
        languages=list(recipe.tokenizer.languages), weights=dict(weights),
        buckets=_buckets(plan, finished), statistics=statistics,
        feature_version=FEATURE_VERSION, versions=installed_versions(), mel_check=recipe.mel_check,
    )


def _buckets(plan: Plan, finished: Mapping[str, Shard]) -> list[Bucket]:
    def shards(split: str, bucket: int) -> list[Shard]:
        files = [shard.file for shard in plan.shards if shard.id[:2] == (split, bucket)]
        return [finished[file] for file in sorted(files) if finished[file].records]

    return [
        Bucket(tokens=shape.tokens, frames=shape.frames, train=shards("train", i), validation=shards("validation", i))
        for i, shape in enumerate(plan.shapes)
    ]


def commit(cache: Path, staging: StagingArea, spec: CacheSpec, index: Path, tokenizer: Tokenizer) -> bool:
    """Turn the complete staging area into the cache; return False if the cache is already the same.

    index: the file of the scratch folder that becomes the index.
    Readers may be at work: nothing that they use is touched here, see `sweep`.
    """
    shards = [shard.file for shard in spec.shards()]
    new = [file for file in shards if staging.staged(file).exists()]
    if not holds(cache / spec.tokenizer_file, spec.tokenizer_sha256):
        atomic_files.write(staging.staged(spec.tokenizer_file), tokenizer.to_bytes())
        new.append(spec.tokenizer_file)
    if not holds(cache / spec.index_file, spec.index_sha256):
        atomic_files.sync_file(index)
        atomic_files.move((index, staging.staged(spec.index_file)))
        new.append(spec.index_file)
    if spec.voices and not holds(cache / spec.voices.file, spec.voices.sha256):
        new.append(spec.voices.file)
    changed = bool(new) or not holds(cache / SPEC_FILE, hashlib.sha256(spec_bytes(spec)).hexdigest())
    if changed:
        atomic_files.move(*((staging.staged(file), cache / file) for file in new))
        atomic_files.write(cache / SPEC_FILE, spec_bytes(spec))
    staging.remove()
    return changed


def holds(path: Path, sha256: str) -> bool:
    """Whether the file exists and has this content."""
    return path.is_file() and file_sha256(path) == sha256


def sweep(cache: Path, spec: CacheSpec) -> int:
    """Remove files that `cache.json` does not, or no longer, list; return the count of those still in use by readers.

    A reader locks the cache before it reads `cache.json`: without a lock nobody reads an earlier version.
    """
    replaced = replaced_files(cache, spec)
    with without_readers(cache) as free:  # in any case: it makes the file that readers without write access lock
        if not free:
            return len(replaced)
        for path in replaced:
            path.unlink(missing_ok=True)
            with suppress(OSError):  # other files are in it
                path.parent.rmdir()
    return 0
