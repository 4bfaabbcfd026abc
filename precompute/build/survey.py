"""Finding out what a build has to do: look back, scan, plan, and tell finished shards from missing ones."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from xtts.precompute.build.build_request import Request
from xtts.precompute.build.changes import corpus_changes, setting_changes, weight_changes, work_ahead
from xtts.precompute.build.commit import tokenizer_bytes
from xtts.precompute.build.ledger import check_rejects
from xtts.precompute.build.quality_filters import Earlier, filter_clips
from xtts.precompute.build.shard_plan import Plan, PreviousPlan, ShardPlan, plan_cache, previous_plan
from xtts.precompute.build.staging import Prior, StagingArea, load_prior, shard_settings
from xtts.precompute.corpus.front_end import FrontEnd
from xtts.precompute.features.cached_mels import StoredMel
from xtts.precompute.features.canary import compute_canary
from xtts.precompute.features.clip_columns import columns_of
from xtts.precompute.features.finished_shard import Finished
from xtts.precompute.features.scan import (
    Found,
    Scanned,
    ScannedRow,
    find_file,
    in_chunks,
    judge,
    recall,
    same_file,
    scan_clips,
)
from xtts.precompute.workers.engine import Engine
from xtts.precompute.workers.progress import Progress
from xtts.shared.audio.mel import FRONT_END
from xtts.shared.cache.cache_spec import SPEC_FILE, shard_places
from xtts.shared.cache.clip_index import IndexRow, Kept
from xtts.shared.cache.stats import letters_of
from xtts.shared.errors import LockstepError
from xtts.shared.feature_settings import FILTERS, feature_config, filter_config
from xtts.shared.text.letter_counts import LetterCounts, check_letters


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
    canary: str | None
    """Of the finished cache, if its mels are of the same audio settings."""
    same_text: bool
    """They were also read with the same text settings."""
    lines: list[str]


_NOTHING = _Existing(prior=None, reusable={}, staged={}, cached={}, canary=None, same_text=False, lines=[])


def survey(request: Request, staging: StagingArea, pool: Engine, progress: Progress) -> Survey:
    """Find out what there is to do, without writing anything."""
    features = {**feature_config(request.config), **filter_config(request.config)}
    existing = _look_back(request, staging, features)
    scanned = _scan(request, existing, pool, progress)
    letters = letters_of(scanned, request.config.text.language)
    for counts in letters:
        check_letters(counts, request.config.text.max_unknown_share, kind=request.config.text.tokenizer)
    staged = {row.clip.id: row for shard in existing.staged.values() for row in shard.rows}
    rows = _filter(request, scanned, [existing.cached, staged], pool, progress)
    columns = columns_of(rows, request.config.split.seed)
    plan = plan_cache(columns, request.config, _previous_plan(existing.prior, features))
    canary = existing.canary or next(iter(pool.run(compute_canary, [request.front_end])))
    front_end = replace(request.front_end, canary=canary)
    settings = _settings(plan, front_end, features)
    there = {**existing.reusable, **existing.staged}
    wanted = (shard for shard in plan.shards if shard.file in there)
    ready = {s.file: there[s.file] for s in wanted if there[s.file].holds(rows_of(s, rows), settings[s.file])}
    missing = [shard for shard in plan.shards if shard.file not in ready]
    stored = _stored((row for shard in missing for row in rows_of(shard, rows)), existing, request.cache, front_end)
    clips = sum(len(shard.clips) for shard in missing)
    changes = [*request.corpora.notes, *existing.lines, *_changes(request, existing.prior, rows, features)]
    changes += work_ahead(ready=len(ready), missing=len(missing), clips=clips, stored=len(stored))
    return Survey(
        front_end=front_end, letters=letters, rows=rows, plan=plan, settings=settings, finished=ready,
        missing=missing, stored=stored, changes=changes,
    )  # fmt: skip


def scan_and_plan(
    request: Request, previous: PreviousPlan, pool: Engine, progress: Progress
) -> tuple[list[ScannedRow], Plan]:
    """The ledger before extraction and the place of every clip that it keeps, from the corpus alone."""
    rows = _filter(request, _scan(request, _NOTHING, pool, progress), [], pool, progress)
    return rows, plan_cache(columns_of(rows, request.config.split.seed), request.config, previous)


def rows_of(shard: ShardPlan, rows: list[ScannedRow]) -> list[Scanned]:
    """The clips of a shard in order."""
    return [row for number in shard.clips.tolist() if isinstance(row := rows[number], Scanned)]


def _filter(
    request: Request, scanned: list[ScannedRow], earlier: Earlier, pool: Engine, progress: Progress
) -> list[ScannedRow]:
    rows = filter_clips(scanned, request.config, request.front_end, earlier, pool, progress)
    check_rejects(rows, request.config, request.corpora.name)
    return rows


def _look_back(request: Request, staging: StagingArea, features: Mapping[str, Any]) -> _Existing:
    """Collect what a finished cache and an interrupted build can save us."""
    cache, prior, lines = request.cache, None, []
    if request.fresh or not cache.is_dir():
        return _NOTHING
    if (cache / SPEC_FILE).exists():
        try:
            prior = load_prior(cache, request.corpora.clips)
        except LockstepError as error:
            lines = [f"{error.where}: {error.found}: the whole cache is built again"]
    reusable = prior.usable(cache, request.exclude) if prior else {}
    staged = staging.finished(request.exclude)
    new = {shard.file for shard in staged.values()} - {shard.file for shard in reusable.values()}
    if new:
        lines.append(f"an interrupted build left {len(new)} finished shards")
    same_audio, same_text = (prior is not None and prior.same_settings(features, name) for name in ("audio", "text"))
    rows = prior.rows if prior is not None and same_audio else []
    return _Existing(
        prior=prior, reusable=reusable, staged=staged, same_text=same_text, lines=lines,
        canary=prior.spec.canary if prior is not None and same_audio else None,
        cached={row.clip.id: row for row in rows if not row.clip.duplicate},
    )  # fmt: skip


def _previous_plan(prior: Prior | None, features: Mapping[str, Any]) -> PreviousPlan | None:
    same = prior is not None and prior.same_settings(features, "audio", "text", "shapes", "shards", "split", FILTERS)
    return previous_plan(prior.spec) if prior is not None and same else None


def _scan(request: Request, existing: _Existing, pool: Engine, progress: Progress) -> list[ScannedRow]:
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


def _settings(plan: Plan, front_end: FrontEnd, features: Mapping[str, Any]) -> dict[str, str]:
    """Shard file to the digest of all that decides its bytes besides its clips."""
    tokenizer = hashlib.sha256(tokenizer_bytes(front_end.tokenizer)).hexdigest()
    return {
        shard.file: shard_settings(
            features,
            shape=plan.shapes[shard.place.bucket],
            speakers=plan.speakers_of(shard),
            tokenizer=tokenizer,
            front_end=str(FRONT_END),
            canary=front_end.canary,
            index_only=front_end.index_only,
        )
        for shard in plan.shards
    }


def _stored(missing: Iterable[Scanned], existing: _Existing, cache: Path, front_end: FrontEnd) -> dict[str, StoredMel]:
    """Mels of the finished cache that are what decoding the audio again would give."""
    prior = existing.prior.spec if existing.prior is not None else None
    if prior is None or prior.names_audio or front_end.index_only or prior.mel_dtype != front_end.mel_dtype:
        return {}
    files, reusable = shard_places(prior), {shard.file for shard in existing.reusable.values()}
    found = {}
    for row in missing:
        cached = existing.cached.get(row.clip.id)
        if not isinstance(cached, Kept) or not same_file(row, cached):
            continue
        file = files.get(cached.place)
        if file is not None and file in reusable:  # else lost, or not to be trusted
            found[row.clip.id] = StoredMel(path=(cache / file).absolute(), written=cached.written)
    return found


def _changes(request: Request, prior: Prior | None, rows: list[ScannedRow], features: Mapping[str, Any]) -> list[str]:
    if prior is None:
        return []
    lines = setting_changes(prior, features)
    return [*lines, *weight_changes(prior, request.corpora), *corpus_changes(prior.rows, rows)]
