"""Finding out what a build has to do: look back, scan, plan, and tell finished shards from missing ones."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from xtts.precompute.build.audio_index import refuse_unsuited
from xtts.precompute.build.cached_mels import StoredMel
from xtts.precompute.build.changes import corpus_changes, setting_changes, weight_changes, work_ahead
from xtts.precompute.build.commit import tokenizer_bytes
from xtts.precompute.build.ledger import check_rejects
from xtts.precompute.build.quality_filters import Earlier, filter_clips
from xtts.precompute.build.scan import Found, ScannedRow, find_file, in_chunks, judge, recall, same_file, scan_clips
from xtts.precompute.build.shard_plan import Plan, PreviousPlan, ShardPlan, plan_cache, previous_plan
from xtts.precompute.build.staging import (
    Finished,
    Prior,
    StagingArea,
    load_prior,
    refuse_foreign_folder,
    shard_settings,
    size_of,
)
from xtts.precompute.corpus.corpora import Corpora, read_corpora
from xtts.precompute.corpus.corpus_entries import Data, parse_data
from xtts.precompute.corpus.front_end import FrontEnd
from xtts.precompute.corpus.listing import with_numbers_in_words
from xtts.precompute.workers.pool import WorkerPool
from xtts.precompute.workers.progress import Progress
from xtts.shared.audio.mel import FRONT_END
from xtts.shared.audio.mel_profiles import mel_profile
from xtts.shared.cache.cache_spec import ENGLISH, INDEX_FILE, SPEC_FILE, TOKENIZER_FILE, load_spec, shard_places
from xtts.shared.cache.clip_index import Clip, IndexRow, Kept, iter_index
from xtts.shared.cache.stats import letters_of
from xtts.shared.config import Config
from xtts.shared.errors import LockstepError
from xtts.shared.feature_settings import FILTERS, feature_config, feature_differences, filter_config
from xtts.shared.text.letter_counts import LetterCounts, check_letters
from xtts.shared.text.tokenizer import Tokenizer, learn_tokenizer, load_tokenizer


@dataclass(frozen=True, kw_only=True)
class Request:
    """What to build from what, and how."""

    corpora: Corpora
    cache: Path
    config: Config
    front_end: FrontEnd
    workers: int
    fresh: bool
    exclude: frozenset[str] = frozenset()
    """Shards that must not be used, whatever they look like."""


def make_request(
    data: Data, cache: Path, config: Config, *, workers: int, limit: int | None = None, fresh: bool = False,
    index_only: bool = False,
) -> Request:  # fmt: skip
    """Check what was asked for, before anything is created."""
    refuse_foreign_folder(cache)
    corpora = read_corpora(parse_data(data), limit=limit)
    if config.text.expand_numbers:
        corpora = replace(corpora, clips=with_numbers_in_words(corpora.clips, config.text.language))
    if index_only:
        refuse_unsuited(corpora.clips, config)
    front_end = _front_end(corpora.roots, config, _tokenizer(corpora.clips, config, None if fresh else cache))
    return Request(
        corpora=corpora, cache=cache, config=config, front_end=replace(front_end, index_only=index_only),
        workers=workers, fresh=fresh,
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Survey:
    """What there is and what is missing."""

    front_end: FrontEnd
    letters: list[LetterCounts]
    """Of each language."""
    rows: list[ScannedRow]
    """The ledger before anything is written."""
    plan: Plan
    settings: Mapping[str, str]
    """Shard file to the digest of all that decides its bytes besides its clips."""
    finished: Mapping[str, Finished]
    missing: list[ShardPlan]
    stored: Mapping[str, StoredMel]
    """Clips of the missing shards whose mel an earlier cache holds."""
    changes: list[str]
    """Lines that say what will be done, and why."""


@dataclass(frozen=True, kw_only=True)
class _Existing:
    """All that earlier builds left."""

    prior: Prior | None
    reusable: Mapping[str, Finished]
    """Shards of the finished cache."""
    staged: Mapping[str, Finished]
    """Shards of an interrupted build, which are newer."""
    cached: Mapping[str, IndexRow]
    """Clips that were read with the same audio settings."""
    same_text: bool
    """They were also read with the same text settings."""
    lines: list[str]


_NOTHING = _Existing(prior=None, reusable={}, staged={}, cached={}, same_text=False, lines=[])


def survey(request: Request, staging: StagingArea, pool: WorkerPool, progress: Progress) -> Survey:
    """Find out what there is to do, without writing anything."""
    features = {**feature_config(request.config), **filter_config(request.config)}
    existing = _look_back(request, staging, features)
    scanned = _scan(request, existing, pool, progress)
    letters = letters_of(scanned, request.config.text.language)
    for counts in letters:
        check_letters(counts, request.config.text.max_unknown_share, kind=request.config.text.tokenizer)
    staged = {row.clip.id: row for shard in existing.staged.values() for row in shard.rows}
    rows = _filter(request, scanned, [existing.cached, staged], pool, progress)
    plan = plan_cache(rows, request.config, _previous_plan(existing.prior, features))
    front_end = replace(request.front_end, speakers=tuple(plan.speakers))
    settings = {shard.file: _settings(shard, plan, front_end, features) for shard in plan.shards}
    there = {**existing.reusable, **existing.staged}
    ready = {s.file: there[s.file] for s in plan.shards if _is_ready(s, there, settings)}
    missing = [shard for shard in plan.shards if shard.file not in ready]
    stored = _stored(missing, existing, request.cache, front_end)
    clips = sum(len(shard.clips) for shard in missing)
    changes = [*request.corpora.notes, *existing.lines, *_changes(request, existing.prior, rows, features)]
    changes += work_ahead(ready=len(ready), missing=len(missing), clips=clips, stored=len(stored))
    return Survey(
        front_end=front_end, letters=letters, rows=rows, plan=plan, settings=settings, finished=ready,
        missing=missing, stored=stored, changes=changes,
    )  # fmt: skip


def scan_and_plan(
    request: Request, previous: PreviousPlan, pool: WorkerPool, progress: Progress
) -> tuple[list[ScannedRow], Plan]:
    """The ledger before extraction and the place of every clip that it keeps, from the corpus alone."""
    rows = _filter(request, _scan(request, _NOTHING, pool, progress), [], pool, progress)
    return rows, plan_cache(rows, request.config, previous)


def _filter(
    request: Request, scanned: list[ScannedRow], earlier: Earlier, pool: WorkerPool, progress: Progress
) -> list[ScannedRow]:
    rows = filter_clips(scanned, request.config, request.front_end, earlier, pool, progress)
    check_rejects(rows, request.config, request.corpora.name)
    return rows


def _tokenizer(clips: list[Clip], config: Config, cache: Path | None) -> Tokenizer:
    """The tokenizer of `config`; what is learned from a corpus is kept while the text settings are the same.

    A clip more or less would otherwise give other tokens to all clips.
    """
    text, stored = config.text, _stored_tokenizer(cache, config) if cache is not None else None
    said = [clip for clip in clips if clip.text and not clip.duplicate]
    fixed = text.tokenizer != "bpe" and all((clip.language or text.language) == ENGLISH for clip in said)
    known = _known_texts(cache, text.language) if cache is not None and stored and not fixed else set()
    texts = {clip.language or text.language: list[str]() for clip in said} or {text.language: []}
    if text.language in texts:  # the main language comes first
        texts = {text.language: [], **texts}
    for clip in [] if fixed else said:
        code = clip.language or text.language
        if (code, clip.text) not in known:
            texts[code].append(clip.text)
    return learn_tokenizer(
        text.tokenizer, texts, vocabulary=text.bpe_vocabulary, add_blank=text.add_blank, previous=stored
    )  # fmt: skip


def _known_texts(cache: Path, language: str) -> set[tuple[str, str]]:
    """(language, text) of every clip that the stored tokenizer was learned from; none where the index is broken."""
    try:
        return {(row.clip.language or language, row.clip.text) for row in iter_index(cache / INDEX_FILE)}
    except LockstepError:
        return set()  # the survey says so


def _stored_tokenizer(cache: Path, config: Config) -> Tokenizer | None:
    """That of a finished cache with the same text settings, unless it is broken."""
    try:
        spec = load_spec(cache)
        tokenizer = load_tokenizer(cache / TOKENIZER_FILE)
    except LockstepError:
        return None  # the survey says so
    same = not feature_differences(spec.features, {"text": feature_config(config)["text"]})
    sound = hashlib.sha256(tokenizer_bytes(tokenizer)).hexdigest() == spec.tokenizer_sha256
    return tokenizer if same and sound else None


def _front_end(roots: Mapping[str, Path], config: Config, tokenizer: Tokenizer) -> FrontEnd:
    return FrontEnd(
        roots=roots,
        profile=mel_profile(config.audio.profile),
        tokenizer=tokenizer,
        language=config.text.language,
        speakers=(),
        trim_silence_db=config.audio.trim_silence_db,
        loudness_lufs=config.audio.loudness_lufs,
        mel_dtype=config.shards.mel_dtype,
        fixed_length=config.shapes.pad_to_fixed_length,
    )


def _look_back(request: Request, staging: StagingArea, features: Mapping[str, Any]) -> _Existing:
    """Collect what a finished cache and an interrupted build can save us."""
    cache, prior, lines = request.cache, None, []
    if request.fresh or not cache.is_dir():
        return _NOTHING
    unfinished = not (cache / SPEC_FILE).exists()
    if not unfinished:
        try:
            prior = load_prior(cache, request.corpora.clips)
        except LockstepError as error:
            lines = [f"{error.where}: {error.found}: the whole cache is built again"]
    staged = staging.finished(committing=unfinished)
    reusable = {
        file: shard
        for file, shard in (prior.shards.items() if prior else ())
        if file not in request.exclude and size_of(cache / file) == shard.bytes
    }
    if staged:
        lines.append(f"an interrupted build left {len(staged)} finished shards")
    same_audio, same_text = (prior is not None and prior.same_settings(features, name) for name in ("audio", "text"))
    rows = prior.rows if prior is not None and same_audio else []
    return _Existing(
        prior=prior, reusable=reusable, staged=staged, same_text=same_text, lines=lines,
        cached={row.clip.id: row for row in rows if not row.clip.duplicate},
    )  # fmt: skip


def _previous_plan(prior: Prior | None, features: Mapping[str, Any]) -> PreviousPlan | None:
    same = prior is not None and prior.same_settings(features, "audio", "text", "shapes", "shards", "split", FILTERS)
    return previous_plan(prior.spec) if prior is not None and same else None


def _scan(request: Request, existing: _Existing, pool: WorkerPool, progress: Progress) -> list[ScannedRow]:
    """Scan every clip that no earlier build knows; rows come back in the corpus' order."""
    front_end, cached = request.front_end, existing.cached
    rows, missing = list[ScannedRow | None](), dict[int, Found]()
    for number, clip in enumerate(request.corpora.clips):
        found = find_file(clip, front_end)
        rows.append(recall(found, cached.get(clip.id) if existing.same_text else None))
        if rows[-1] is None:
            missing[number] = found
    progress.start("scan", len(missing), 0.0)
    waiting = ((number, found, cached.get(found.clip.id)) for number, found in missing.items())
    for findings in pool.run(partial(scan_clips, front_end), in_chunks(waiting, front_end, lambda job: job[1].clip)):
        for it in findings:
            rows[it.number] = judge(Found(missing[it.number].clip, it.file), it.tokens, it.audio)
        progress.advance(len(findings), 0.0)
    return [row for row in rows if row is not None]


def _settings(shard: ShardPlan, plan: Plan, front_end: FrontEnd, features: Mapping[str, Any]) -> str:
    return shard_settings(
        features,
        shape=plan.shapes[shard.place.bucket],
        speakers={row.clip.speaker: front_end.speaker_id(row.clip.speaker) for row in shard.clips if row.clip.speaker},
        tokenizer=hashlib.sha256(tokenizer_bytes(front_end.tokenizer)).hexdigest(),
        front_end=str(FRONT_END),
        index_only=front_end.index_only,
    )


def _is_ready(shard: ShardPlan, shards: Mapping[str, Finished], settings: Mapping[str, str]) -> bool:
    there = shards.get(shard.file)
    return there is not None and there.holds(shard, settings[shard.file])


def _stored(missing: list[ShardPlan], existing: _Existing, cache: Path, front_end: FrontEnd) -> dict[str, StoredMel]:
    """Mels of the finished cache that are what decoding the audio again would give."""
    prior = existing.prior.spec if existing.prior is not None and not front_end.index_only else None
    if prior is None or prior.names_audio or prior.mel_dtype != front_end.mel_dtype:
        return {}
    files = shard_places(prior)
    found = {}
    for row in (row for shard in missing for row in shard.clips):
        cached = existing.cached.get(row.clip.id)
        if not isinstance(cached, Kept) or not same_file(row, cached):
            continue
        file = files.get(cached.place)
        if file is not None and file in existing.reusable:  # else lost, or not to be trusted
            found[row.clip.id] = StoredMel(path=(cache / file).absolute(), written=cached.written)
    return found


def _changes(request: Request, prior: Prior | None, rows: list[ScannedRow], features: Mapping[str, Any]) -> list[str]:
    if prior is None:
        return []
    lines = setting_changes(prior.spec.features, features)
    return [*lines, *weight_changes(prior, request.corpora), *corpus_changes(prior.rows, rows)]
