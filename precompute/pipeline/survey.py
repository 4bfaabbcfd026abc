"""Finding out what a build has to do: look back, scan, plan, and tell finished shards from missing ones."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from xtts.precompute.corpus.clip_audio import find_audio
from xtts.precompute.corpus.feature_extractor import FeatureExtractor
from xtts.precompute.features.cached_mels import StoredClips
from xtts.precompute.features.filters import ask_for_samples
from xtts.precompute.features.finished_shard import Finished
from xtts.precompute.features.mel_check import compute_mel_check
from xtts.precompute.features.scan import SAME_AUDIO, SAME_LANGUAGE, SAME_SPEAKER, SAME_TEXT, Scanner, ScanTask, scan
from xtts.precompute.features.tables import pack, unpack
from xtts.precompute.pipeline.build_request import TOKENISED_AGAIN, BuildRequest
from xtts.precompute.pipeline.previous import PreviousCache, reopened
from xtts.precompute.pipeline.rejections import check_rejects, rejected_clips
from xtts.precompute.pipeline.shard_plan import Plan, ShardPlan, plan_cache, plan_columns, previous_plan
from xtts.precompute.pipeline.staging import StagingArea, shard_settings
from xtts.precompute.workers.engine import Progress, TaskEngine, ThisProcess
from xtts.shared.audio.mel import FEATURE_VERSION
from xtts.shared.cache.bucket_shapes import round_up
from xtts.shared.cache.cache_spec import CacheSpec, Shard
from xtts.shared.cache.clip_index import MISSING_AUDIO, UNKNOWN, clips_of, index_schema
from xtts.shared.errors import LockstepError
from xtts.shared.feature_settings import NO_FEATURES, Features, setting_differences, stored_features
from xtts.shared.text.letter_counts import LetterCounts, check_letters

if TYPE_CHECKING:
    import pyarrow as pa

_CONSEQUENCES = {
    "audio": "all mels are computed again",
    "text": TOKENISED_AGAIN,
    "shapes": "the mels are taken from the cache and padded again",
    "shards": "the shards are divided again",
    "split": "the clips are divided again",
    "data": "the clips are chosen again, the mels are taken from the cache",
}
_DIFFERENCES = {
    "with other audio": SAME_AUDIO,
    "with another transcript": SAME_TEXT,
    "with another language": SAME_LANGUAGE,
    "with another speaker": SAME_SPEAKER,
}
_SHARE_OF_OTHERS, _MUCH_LONGER = 0.99, 3
"""A clip so many times as long as this share of them is worth a line."""
_FEW_ROWS = 2**10
_LEAST_CLIPS, _MOST_CLIPS, _ENOUGH_TASKS = 64, 4096, 512
"""Of a task of the scan; and how many tasks are enough to keep all workers busy to the end."""


@dataclass(frozen=True, kw_only=True)
class Survey:
    """What there is and what is missing."""

    previous: PreviousCache
    staged: Mapping[str, Finished]
    """Shards of an interrupted build, newer than those of `previous`, by file without digest."""
    extractor: FeatureExtractor
    clips: "pa.Table"
    """All clips after the scan, with the columns of an index."""
    letters: list[LetterCounts]
    """Of each language, in the order of their codes."""
    plan: Plan
    settings: Mapping[str, str]
    """Shard file to the digest of all that decides its bytes besides its clips."""
    ready: Mapping[str, Shard]
    """Shards that need not be written, by file without digest."""
    missing: list[ShardPlan]
    stored: Mapping[str, StoredClips]
    """Of the missing shards."""
    changes: list[str]
    """Lines that say what will be done, and why."""


def survey(request: BuildRequest, staging: StagingArea, pool: TaskEngine, progress: Progress) -> Survey:
    """Find out what there is to do; nothing is written but the audio that has to be unpacked."""
    features = stored_features(request.config)
    previous = request.previous if request.fresh else reopened(request.previous, request.cache)
    previous.find_shards(request.cache, request.exclude)
    staged = {} if request.fresh else staging.finished(request.exclude)
    clips, letters = scan_clips(request, previous, staging, pool, progress)
    columns, spec = plan_columns(clips, request.config.split.seed), previous.spec
    kept = previous_plan(spec) if spec and previous.has_settings(features, *features) else None
    plan = plan_cache(columns, request.config, kept)
    if spec and previous.has_settings(features, "audio"):
        mel_check = spec.mel_check
    else:
        mel_check = next(iter(pool.run(compute_mel_check, [request.extractor])))
    extractor = replace(request.extractor, mel_check=mel_check, unpacked=staging.scratch)
    settings, ready = _settings(plan, extractor, features), dict[str, Shard]()
    for shard in plan.shards:
        if shard.file in staged:
            finished = _still_right(staged[shard.file], clips.take(shard.clips), settings[shard.file])
        else:
            finished = previous.reusable(shard, plan.speakers_of(shard), settings[shard.file])
        if finished is not None:
            ready[shard.file] = finished
    missing = [shard for shard in plan.shards if shard.file not in ready]
    files = {} if extractor.index_only else previous.mel_files(request.cache, features)
    stored = {shard.file: previous.stored_mels(shard, files) for shard in missing}
    count, from_cache = sum(len(shard.clips) for shard in missing), sum(len(one.places) for one in stored.values())
    changes = [*request.corpora.notes, *([previous.problem] if previous.problem else [])]
    new = {one.shard.file for one in staged.values()} - {shard.file for shard in previous.shards.values()}
    if new:
        changes.append(f"an interrupted build left {len(new)} finished shards")
    if spec is not None and len(previous.rows):
        changes += [*_setting_changes(spec, features), *_corpus_changes(clips, previous)]
    changes += _longest(clips, plan, extractor)
    changes += _work_ahead(ready=len(ready), missing=len(missing), clips=count, stored=from_cache)
    return Survey(
        previous=previous, staged=staged, extractor=extractor, clips=clips, letters=letters, plan=plan,
        settings=settings, ready=ready, missing=missing, stored=stored, changes=changes,
    )  # fmt: skip


def scan_clips(
    request: BuildRequest, previous: PreviousCache, staging: StagingArea, pool: TaskEngine, progress: Progress
) -> tuple["pa.Table", list[LetterCounts]]:
    """All clips with the columns of an index, and the letters of each language.

    A `LockstepError` where too many letters or clips would be lost.
    """
    config, corpora, features = request.config, request.corpora, stored_features(request.config)
    tokenizer = request.extractor.tokenizer.sha256
    same_tokenizer = previous.spec is not None and previous.spec.tokenizer_sha256 == tokenizer
    scanner = Scanner(
        extractor=replace(request.extractor, unpacked=staging.scratch),
        same_audio=previous.has_settings(features, "audio"),
        same_text=previous.has_settings(features, "text") and same_tokenizer,
    )
    previous.find_rows(request.corpora.clips)
    progress.start("scan", len(request.corpora.clips), 0.0)
    # A small rerun is over before workers have started; decoding is theirs, whose sums are those of one thread.
    decodes = config.audio.trim_silence_db is not None or ask_for_samples(config.data.filters)
    is_small = 0 < len(previous.rows) <= _FEW_ROWS and not decodes and not pool.spans_machines
    engine = ThisProcess() if is_small else pool
    facts, counts = dict[int, "pa.Table"](), dict[str, LetterCounts]()
    for result in engine.run(partial(scan, scanner), _tasks(request.corpora.clips, previous)):
        facts[result.start] = unpack(result.facts)
        previous.unchanged[result.known] = result.same
        for one in result.letters:
            counts.setdefault(one.language, LetterCounts(one.language)).merge(one)
        progress.advance(len(facts[result.start]), 0.0)
    letters = [counts[code] for code in sorted(counts)]
    for one in letters:
        check_letters(one, config.text.max_unknown_share, kind=config.text.tokenizer)
    clips = _joined(request.corpora.clips, [facts[start] for start in sorted(facts)])
    if pool.spans_machines:
        _check_missing(clips, request.extractor)
    check_rejects(rejected_clips(clips), config, corpora.name, corpora.roots, of=len(clips))
    return clips, letters


def _tasks(clips: "pa.Table", previous: PreviousCache) -> Iterator[ScanTask]:
    size = min(_MOST_CLIPS, max(_LEAST_CLIPS, len(clips) // _ENOUGH_TASKS))
    for start in range(0, len(clips), size):
        part = clips.slice(start, size)
        known, rows = previous.rows_between(start, start + len(part))
        yield ScanTask(start=start, clips=pack(part), known=known, rows=rows)


def _check_missing(clips: "pa.Table", extractor: FeatureExtractor) -> None:
    """A `LockstepError` for a file that another machine does not see: its clip must not count as one without audio."""
    import pyarrow.compute as pc

    for clip in clips_of(clips.filter(pc.equal(clips["reason"], MISSING_AUDIO))):
        if find_audio(extractor.path(clip))[0] != UNKNOWN:
            fix = "mount the corpus on every machine at the same path, and run the same command again"
            found = "not seen from another machine"
            raise LockstepError(str(extractor.path(clip)), found=found, fix=fix, exit_code=1)


def _joined(clips: "pa.Table", facts: list["pa.Table"]) -> "pa.Table":
    """Clips with what was found out about them, in the order of an index' columns."""
    import pyarrow as pa

    found = pa.concat_tables(facts).combine_chunks()
    columns = {name: (clips if name in clips.column_names else found)[name] for name in index_schema().names}
    return pa.table(columns, index_schema())  # type: ignore[arg-type]


def _settings(plan: Plan, extractor: FeatureExtractor, features: Features) -> dict[str, str]:
    """Shard file to the digest of all that decides its bytes besides its clips."""
    tokenizer = extractor.tokenizer.sha256
    return {
        shard.file: shard_settings(
            features, plan.shapes[shard.place.bucket], plan.speakers_of(shard), tokenizer=tokenizer,
            feature_version=FEATURE_VERSION, mel_check=extractor.mel_check, index_only=extractor.index_only,
        )
        for shard in plan.shards
    }  # fmt: skip


def _still_right(staged: Finished, clips: "pa.Table", settings: str) -> Shard | None:
    """A staged shard if it was written of these clips with these settings."""
    rows = hashlib.sha256(pack(clips)).hexdigest()
    return staged.shard if (staged.settings, staged.clips) == (settings, rows) else None


def _setting_changes(previous: CacheSpec, new: Features) -> list[str]:
    """One line for another version of the feature extractor, and for each setting with another value."""
    before, all_mels = previous.feature_version, _CONSEQUENCES["audio"]
    version = f"feature extractor: version {before} -> {FEATURE_VERSION}: {all_mels}"
    return [version] * (before != FEATURE_VERSION) + [
        f"{key}: {before} -> {now}: "
        + ("no shard is written for it" if key in NO_FEATURES else _CONSEQUENCES[key.split(".")[0]])
        for key, before, now in setting_differences(previous.features, new)
    ]


def _corpus_changes(clips: "pa.Table", previous: PreviousCache) -> list[str]:
    """How many clips were added, removed, recorded again or transcribed again, with an example each."""
    known, first = previous.row_of_clip >= 0, ~clips["duplicate"].to_numpy()
    removed = np.ones(len(previous.rows), bool)
    removed[previous.row_of_clip[known]] = False
    groups = [("added", clips, ~known & first), ("removed", previous.rows, removed)]
    groups += [(what, clips, known & (previous.unchanged & bit == 0)) for what, bit in _DIFFERENCES.items()]
    lines = list[str]()
    for what, table, chosen in groups:
        names = table["id"].filter(chosen).slice(0, 2).to_pylist()
        if names:
            count = int(chosen.sum())
            shown = f"{names[0]}{', ...' if count > 1 else ''}"
            lines.append(f"{count} {'clip' if count == 1 else 'clips'} {what} ({shown})")
    return lines


def _longest(clips: "pa.Table", plan: Plan, extractor: FeatureExtractor) -> list[str]:
    """A line about a clip that alone, or with a few, makes the largest shape much larger than the others need."""
    kept = clips.filter(plan.columns.kept)
    frames, seconds = kept["mel_length"].to_numpy(), extractor.profile.seconds
    longest, most = int(frames.max()), int(np.quantile(frames, _SHARE_OF_OTHERS, method="lower"))
    if longest <= _MUCH_LONGER * most:
        return []
    return [
        f"clip {kept['id'][int(frames.argmax())]} has {seconds(longest):.0f} s and widens the largest shape; all but "
        f"{(frames > most).sum()} of the clips have at most {seconds(most):.0f} s, and --set "
        f"shapes.max_mel_frames={round_up(most)} leaves out longer ones"
    ]


def _work_ahead(*, ready: int, missing: int, clips: int, stored: int) -> list[str]:
    """What the build will do."""
    if not missing:
        return [f"{ready} shards are finished, none is written"]
    sources = f"{clips} clips, {clips - stored} of them from audio and {stored} from stored mels"
    return [f"{missing} shards are written ({sources}), {ready} are kept"]
