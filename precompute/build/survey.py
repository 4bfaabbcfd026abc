"""Finding out what a build has to do: look back, scan, plan, and tell finished shards from missing ones."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from xtts.precompute.build.build_request import Request
from xtts.precompute.build.changes import corpus_changes, setting_changes, weight_changes, work_ahead
from xtts.precompute.build.commit import tokenizer_bytes
from xtts.precompute.build.ledger import Ledger
from xtts.precompute.build.look_back import NOTHING, Existing, Shards, look_back
from xtts.precompute.build.scanning import Scan, measure, scan_clips
from xtts.precompute.build.shard_plan import Plan, PreviousPlan, ShardPlan, plan_cache, previous_plan
from xtts.precompute.build.staging import Prior, StagingArea, shard_settings, size_of
from xtts.precompute.corpus.front_end import FrontEnd
from xtts.precompute.features.cached_mels import StoredClips
from xtts.precompute.features.canary import compute_canary
from xtts.precompute.features.earlier_rows import EarlierColumns
from xtts.precompute.features.finished_shard import Finished
from xtts.precompute.features.scan_part import SAME_CLIP, SAME_FILE, Scanner
from xtts.precompute.workers.engine import Engine
from xtts.precompute.workers.progress import Progress
from xtts.shared.audio.mel import FRONT_END
from xtts.shared.cache.clip_index import Place
from xtts.shared.cache.file_names import shard_place
from xtts.shared.feature_settings import FILTERS, Features, stored_features
from xtts.shared.text.letter_counts import check_letters


@dataclass(frozen=True, kw_only=True)
class Ready:
    """A shard that need not be written, and the earlier rows of its clips in order."""

    done: Finished
    rows: np.ndarray
    """Places among `earlier`."""
    earlier: EarlierColumns


@dataclass(frozen=True, kw_only=True)
class Stored:
    """Mels of the finished cache that are what decoding the audio again would give."""

    row: np.ndarray
    """int32[N]: row of each clip among `earlier`, -1 for a clip without such a mel; empty where no clip has one."""
    earlier: EarlierColumns
    shards: Shards
    """Those of the cache."""
    files: list[tuple[Place, Path]]
    """By number of the shard."""

    def without(self, numbers: np.ndarray) -> np.ndarray:
        """Those of some clips that have none."""
        return numbers[self.row[numbers] < 0] if len(self.row) else numbers

    def of(self, shard: ShardPlan) -> StoredClips:
        """Those of a shard's clips."""
        rows = self.row[shard.clips] if len(self.row) else np.full(len(shard.clips), -1, np.int32)
        places = np.flatnonzero(rows >= 0)
        rows = rows[places]
        used = np.unique(self.shards.of_row[rows]).tolist()
        files = dict(self.files[number] for number in used)
        return StoredClips(places=places, spots=self.earlier.spots(rows), files=files)


@dataclass(frozen=True, kw_only=True)
class Survey:
    """What there is and what is missing."""

    front_end: FrontEnd
    scan: Scan
    plan: Plan
    settings: Mapping[str, str]
    """Shard file to the digest of all that decides its bytes besides its clips."""
    ready: Mapping[str, Ready]
    """Shards by file without digest."""
    missing: list[ShardPlan]
    stored: Stored
    changes: list[str]
    """Lines that say what will be done, and why."""

    @property
    def ledger(self) -> Ledger:
        """All clips."""
        return self.scan.ledger


def survey(request: Request, staging: StagingArea, pool: Engine, progress: Progress) -> Survey:
    """Find out what there is to do; nothing is written but the parts of `staging`, which hold the rows."""
    features = stored_features(request.config)
    request = _with_room(request, staging)
    existing = look_back(request, staging, features, request.engine_for_rows(pool))
    scan = _scan(request, existing, staging, pool, progress)
    plan = plan_cache(scan.ledger.columns, request.config, _previous_plan(existing.prior, features))
    canary = existing.canary or next(iter(pool.run(compute_canary, [request.front_end])))
    front_end = replace(request.front_end, canary=canary)
    settings = _settings(plan, front_end, features)
    ready = {shard.file: one for shard in plan.shards if (one := _ready(shard, settings, plan, existing, scan))}
    missing = [shard for shard in plan.shards if shard.file not in ready]
    stored = _stored(request, existing, scan, front_end)
    clips = sum(len(shard.clips) for shard in missing)
    new = sum(len(stored.without(shard.clips)) for shard in missing)
    changes = [*request.corpora.notes, *existing.lines, *_changes(request, existing, scan, features)]
    changes += work_ahead(ready=len(ready), missing=len(missing), clips=clips, stored=clips - new)
    return Survey(
        front_end=front_end, scan=scan, plan=plan, settings=settings, ready=ready, missing=missing, stored=stored,
        changes=changes,
    )  # fmt: skip


def scan_and_plan(
    request: Request, previous: PreviousPlan, staging: StagingArea, pool: Engine, progress: Progress
) -> tuple[Scan, Plan]:
    """The ledger before extraction and the place of every clip that it keeps, from the corpus alone."""
    scan = _scan(_with_room(request, staging), NOTHING, staging, pool, progress)
    return scan, plan_cache(scan.ledger.columns, request.config, previous)


def _with_room(request: Request, staging: StagingArea) -> Request:
    """The request with a folder to unpack audio into."""
    return replace(request, front_end=replace(request.front_end, unpacked=staging.parts))


def _scan(request: Request, existing: Existing, staging: StagingArea, pool: Engine, progress: Progress) -> Scan:
    """Scan, and stop where too many letters or clips would be lost."""
    config = request.config
    scanner = Scanner(
        front_end=request.front_end, config=config, folder=staging.parts, same_audio=existing.same_audio,
        same_text=existing.same_text,
    )  # fmt: skip
    rows = request.engine_for_rows(pool)
    scan = scan_clips(scanner, request.clips, existing.cached, existing.staged_rows, rows, progress)
    for counts in scan.letters:
        check_letters(counts, config.text.max_unknown_share, kind=config.text.tokenizer)
    measure(scan, scanner, pool, progress)
    scan.ledger.check_rejects(config, request.corpora.name, request.corpora.roots)
    return scan


def _previous_plan(prior: Prior | None, features: Features) -> PreviousPlan | None:
    same = prior is not None and prior.same_settings(features, "audio", "text", "shapes", "shards", "split", FILTERS)
    return previous_plan(prior.spec) if prior is not None and same else None


def _settings(plan: Plan, front_end: FrontEnd, features: Features) -> dict[str, str]:
    """Shard file to the digest of all that decides its bytes besides its clips."""
    tokenizer = hashlib.sha256(tokenizer_bytes(front_end.tokenizer)).hexdigest()
    return {
        shard.file: shard_settings(
            features,
            shape=plan.shapes[shard.place.bucket],
            speakers=plan.speakers_of(shard),
            tokenizer=tokenizer,
            front_end=FRONT_END,
            canary=front_end.canary,
            index_only=front_end.index_only,
        )
        for shard in plan.shards
    }


def _ready(shard: ShardPlan, settings: Mapping[str, str], plan: Plan, existing: Existing, scan: Scan) -> Ready | None:
    """The finished shard that writing these clips now would give again; one of an interrupted build is newer."""
    slot = shard.file
    if slot in existing.staged.finished:
        done, earlier = existing.staged.finished[slot], existing.staged_rows
        rows = _held_rows(shard, existing.staged, earlier, scan.staged, scan.staged_same)
        before = done.settings
    elif slot in existing.reusable.finished and existing.prior is not None:
        done, earlier = existing.reusable.finished[slot], existing.cached
        rows = _held_rows(shard, existing.reusable, earlier, scan.cached, scan.cached_same)
        before = existing.prior.settings_of(shard.place.bucket, plan.speakers_of(shard)) if rows is not None else ""
    else:
        return None
    return Ready(done=done, rows=rows, earlier=earlier) if rows is not None and before == settings[slot] else None


def _held_rows(
    shard: ShardPlan, shards: Shards, earlier: EarlierColumns, row: np.ndarray, same: np.ndarray
) -> np.ndarray | None:
    """The earlier rows of a shard's clips, if the finished shard of its name holds just these, in this order."""
    number = shards.number[shard.file]
    if not len(row) or shards.clips[number] != len(shard.clips):
        return None
    rows = row[shard.clips]
    if (rows < 0).any() or (shards.of_row[rows] != number).any() or not (same[shard.clips] & SAME_CLIP).all():
        return None
    positions = earlier.position[rows]
    return rows if (np.diff(positions[positions >= 0]) > 0).all() else None


def _stored(request: Request, existing: Existing, scan: Scan, front_end: FrontEnd) -> Stored:
    prior, shards = existing.prior, existing.reusable
    row, files = np.zeros(0, np.int32), list[tuple[Place, Path]]()
    same = prior is not None and not prior.spec.names_audio and prior.spec.mel_dtype == front_end.mel_dtype
    if prior is not None and same and existing.same_audio and not front_end.index_only and len(scan.cached):
        files = [(shard_place(slot), (request.cache / done.file).absolute()) for slot, done in prior.shards.items()]
        # Else the shard is lost, or not to be trusted; the last place is for rows without a shard.
        there = {slot for slot, done in shards.finished.items() if size_of(request.cache / done.file) == done.bytes}
        usable = np.array([*(slot in there for slot in shards.number), False], bool)
        row = np.where(scan.cached_same & SAME_FILE != 0, scan.cached, -1).astype(np.int32)
        row[~usable[shards.of_row[row]]] = -1
    return Stored(row=row, earlier=existing.cached, shards=shards, files=files)


def _changes(request: Request, existing: Existing, scan: Scan, features: Features) -> list[str]:
    if existing.prior is None:
        return []
    lines = setting_changes(existing.prior, features)
    lines += weight_changes(existing.prior, existing.cached.corpora, request.corpora)
    return [*lines, *corpus_changes(scan, existing.cached)]
