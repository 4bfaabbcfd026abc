"""Compare a cache with its corpus, compute features again, and repair broken files."""

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from xtts.precompute.check.verify import CacheFinding
from xtts.precompute.corpus.clip_audio import audio_digest, may_be_same_file, read_audio, with_file
from xtts.precompute.corpus.corpus_entries import Data
from xtts.precompute.corpus.record_recipe import RecordRecipe, resampling_rate
from xtts.precompute.features.clip_features import extract_mel
from xtts.precompute.pipeline.build_cache import run_build
from xtts.precompute.pipeline.build_request import BuildRequest, make_request
from xtts.precompute.workers.disks import beside, check_visible, disk_errors_explained
from xtts.precompute.workers.worker_pool import Progress, WorkerPool
from xtts.shared.audio.decode import AudioProblem
from xtts.shared.audio.mel import MEL_TOLERANCE
from xtts.shared.cache.cache_spec import CacheSpec, load_spec, shard_files
from xtts.shared.cache.clip_index import UNKNOWN, Clip, IndexRow, clips_of, kept_rows, read_index
from xtts.shared.cache.records import CorruptRecord, Record
from xtts.shared.cache.shard_reader import RecordReader, read_shard
from xtts.shared.config import Config
from xtts.shared.config_files import validate_config
from xtts.shared.errors import LockstepError, build_command, counted_noun

_DEEP_CHUNK = 16
_TOLERANCE = {"float32": MEL_TOLERANCE, "float16": 0.02}
"""Largest difference in log-mel, by stored type: for float16 two quiet steps, as from another FFT library."""


def cache_request(cache: Path, data: Data, *, limit: int | None = None, exclude: Collection[str] = ()) -> BuildRequest:
    """The request that would rebuild this cache, with its own weights; exclude: shards that must not be reused."""
    spec = load_spec(cache)
    settings = [("the default size", {"model": {"size": "tiny"}}), (str(cache), dict(spec.features))]
    config: Config = validate_config(settings)
    request = make_request(data, cache, config, limit=limit, keep_lexicon=True)
    corpora = replace(request.corpora, weights=spec.weights)
    return replace(request, corpora=corpora, exclude=frozenset(exclude))


def repair_cache(
    cache: Path, data: Data, findings: Iterable[CacheFinding], pool: WorkerPool, progress: Progress
) -> None:
    """Rewrite the files of the findings, to the bytes that `cache.json` records; without an index all files.

    Raises `LockstepError` if the corpus has changed since.
    """
    spec = load_spec(cache)
    broken = {finding.file for finding in findings}
    request = cache_request(cache, data, limit=spec.index_rows, exclude=broken)
    clips, refusal = len(request.corpora.clips), partial(LockstepError, fix=build_command(cache), exit_code=1)
    if clips < spec.index_rows:
        wanted = f"the {spec.index_rows} that the cache was built from"
        raise refusal(request.corpora.name, found=f"{clips} clips", expected=wanted)
    if spec.index_file in broken:
        if problem := _unknown_clip(cache, spec, broken, request):
            raise refusal(request.corpora.name, found=problem, expected="the corpus that the cache was built from")
    elif changed := check_corpus(cache, request):
        count = counted_noun(len(changed), "clip")
        problem = f"{count} changed since the cache was built, such as {changed[0].location}"
        raise refusal(request.corpora.name, found=problem)
    if run_build(request, pool, progress).spec.index_sha256 != spec.index_sha256:
        progress.say(f"{spec.index_file}: the corpus has changed since; the cache now matches the corpus")


def _unknown_clip(cache: Path, spec: CacheSpec, broken: Collection[str], request: BuildRequest) -> str:
    """Return what is wrong if the first clip of a readable shard is not in the corpus; else an empty string."""
    ids = set(request.corpora.clips["id"].to_pylist())
    for file in [shard.file for shard in spec.shards() if shard.file not in broken]:
        with suppress(OSError, CorruptRecord, StopIteration):  # the build writes it again
            clip = next(read_shard(cache / file, spec)).clip_id
            if clip not in ids:
                return f"no clip {clip}, which {file} holds"
    return ""


def check_corpus(cache: Path, request: BuildRequest) -> list[CacheFinding]:
    """Find every clip that was changed, added or removed since the cache was built."""
    rows = read_index(cache / load_spec(cache).index_file)
    cached = {row.clip.id: row for row in rows if not row.clip.duplicate}
    findings: list[CacheFinding] = []
    with _with_room(request) as recipe:
        for clip in clips_of(request.corpora.clips):
            if not clip.duplicate:
                findings += _differences(with_file(clip, recipe), cached.pop(clip.id, None), recipe)
    findings += [_finding(row.clip, "in the cache", "removed from the corpus") for row in cached.values()]
    return [replace(finding, fix=build_command(cache)) for finding in findings]


@contextmanager
def _with_room(request: BuildRequest) -> Iterator[RecordRecipe]:
    """The recipe with a folder to unpack audio into, beside the cache so that every machine sees it."""
    with disk_errors_explained(request.cache), TemporaryDirectory(dir=beside(request.cache)) as folder:
        yield replace(request.recipe, unpacked=Path(folder))


def _differences(row: IndexRow, cached: IndexRow | None, recipe: RecordRecipe) -> Iterator[CacheFinding]:
    clip = row.clip
    if cached is None:
        yield _finding(clip, "added to the corpus", "a clip of the cache")
        return
    if clip.text != cached.clip.text:
        yield _finding(clip, "transcript changed", f"{cached.clip.text[:60]!r}")
    if clip.speaker != cached.clip.speaker:
        yield _finding(clip, f"speaker {clip.speaker!r}", f"{cached.clip.speaker!r}")
    if not may_be_same_file(row, cached):
        digest = cached.audio_sha256
        if not digest or digest != audio_digest(clip, recipe):
            yield _finding(clip, *(_MISSING if row.source_bytes == UNKNOWN else _CHANGED))


_MISSING, _CHANGED = (("audio missing", "the audio of the cache"), ("audio changed", "the audio of the cache"))


def _finding(clip: Clip, found: str, expected: str) -> CacheFinding:
    return CacheFinding(file=clip.source, location=f"{clip.source} ({clip.id})", found=found, expected=expected)


_Job = tuple[IndexRow, Path]
"""(clip to recompute, its shard)."""


def compare_features(cache: Path, request: BuildRequest, pool: WorkerPool, *, clips: int | None) -> list[CacheFinding]:
    """Recompute features and compare; clips: how many, chosen by the digests of their records, None for all."""
    spec = load_spec(cache)
    files = shard_files(spec)
    rows = (row for row in read_index(cache / spec.index_file) if row.clip.corpus in request.recipe.roots)
    chosen = sorted(kept_rows(rows), key=lambda row: row.record_sha256)[:clips]
    jobs = [(row, (cache / files[row.shard_id]).absolute()) for row in chosen]
    chunks = (jobs[i : i + _DEEP_CHUNK] for i in range(0, len(jobs), _DEEP_CHUNK))
    with _with_room(request) as recipe, pool:
        findings = [finding for chunk in pool.run(partial(_compare, recipe), chunks) for finding in chunk]
    return sorted(findings, key=lambda finding: finding.location)


def _compare(recipe: RecordRecipe, jobs: list[_Job]) -> list[CacheFinding]:
    for folder in {recipe.roots[row.clip.corpus] for row, _ in jobs} | {jobs[0][1].parents[2]}:
        check_visible(folder)
    mels = RecordReader(mel_dtype=recipe.config.shards.mel_dtype, mel_channels=recipe.profile.mel_channels)
    return [finding for row, path in jobs for finding in _compare_clip(row, path, mels, recipe)]


def _compare_clip(row: IndexRow, path: Path, mels: RecordReader, recipe: RecordRecipe) -> Iterator[CacheFinding]:
    about = {"file": "/".join(path.parts[-3:]), "fix": build_command(path.parents[2], fresh=True)}
    about["location"] = f"{about['file']} record {row.position} ({row.clip.id})"
    try:
        audio = read_audio(recipe.audio(row.clip), row.clip, recipe.config.audio.channel)
        if row.audio_sha256 not in ("", audio.sha256):
            yield _finding(row.clip, *_CHANGED)  # as `check_corpus` may have reported, if size or time differ
            return
        samples = recipe.samples(audio, resampling_rate(row.clip, recipe.config))
        mel = extract_mel(samples, row.mel_length, recipe)
        stored = mels.read(path, row.position, row.clip.id)
    except (OSError, AudioProblem, LockstepError) as error:
        yield CacheFinding(**about, found=f"cannot be compared: {error}")
        return
    yield from _compare_mel(mel, stored, recipe, about)
    if recipe.encode(row.clip).ids != stored.tokens[: stored.token_length].tolist():
        yield CacheFinding(**about, found="tokens differ from those of its transcript")


def _compare_mel(
    mel: np.ndarray, stored: Record, recipe: RecordRecipe, about: dict[str, str]
) -> Iterator[CacheFinding]:
    error = np.abs(mel.astype(np.float32) - stored.unpadded_mel.astype(np.float32))
    most = _TOLERANCE[recipe.config.shards.mel_dtype]
    if not error.max() <= most:  # nor a number
        frame, channel = np.unravel_index(int(error.argmax()), error.shape)
        found = f"mel differs by {error.max():.3f} at frame {frame}, channel {channel}"
        yield CacheFinding(**about, found=found, expected=f"at most {most}")
