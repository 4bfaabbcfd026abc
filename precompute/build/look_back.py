"""Looking back: what a finished cache and an interrupted build can save the next one."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from xtts.precompute.build.build_request import Request
from xtts.precompute.build.staging import Prior, StagingArea, load_prior
from xtts.precompute.features.earlier_rows import (
    EarlierColumns,
    EarlierTask,
    join_earlier,
    place_number,
    write_earlier,
)
from xtts.precompute.features.finished_shard import Finished
from xtts.precompute.workers.engine import Engine
from xtts.shared.cache.cache_spec import SPEC_FILE, shard_places
from xtts.shared.cache.clip_index import readable_index
from xtts.shared.cache.file_names import shard_place
from xtts.shared.errors import LockstepError
from xtts.shared.feature_settings import Features

NO_ROWS = join_earlier([])


@dataclass(frozen=True, kw_only=True)
class Shards:
    """Finished shards whose clips may be those of a plan."""

    finished: Mapping[str, Finished]
    """By file name without digest."""
    number: Mapping[str, int]
    """What `of_row` calls each."""
    of_row: np.ndarray
    """int32[M]: number of each row's shard, -1 for none."""
    clips: np.ndarray
    """int64: rows of each number."""


@dataclass(frozen=True, kw_only=True)
class Existing:
    """All that earlier builds left."""

    prior: Prior | None
    cached: EarlierColumns
    """Rows of the finished cache."""
    reusable: Shards
    """Its shards."""
    staged_rows: EarlierColumns
    staged: Shards
    """Shards of an interrupted build, which are newer."""
    same_audio: bool
    """The finished cache was built with the same settings of audio."""
    same_text: bool
    """And of text."""
    lines: list[str]

    @property
    def canary(self) -> str | None:
        """Of the finished cache, if its mels are of the same audio settings."""
        return self.prior.spec.canary if self.prior is not None and self.same_audio else None


_NO_SHARDS = Shards(finished={}, number={}, of_row=np.zeros(0, np.int32), clips=np.zeros(0, np.int64))
NOTHING = Existing(
    prior=None, cached=NO_ROWS, reusable=_NO_SHARDS, staged_rows=NO_ROWS, staged=_NO_SHARDS, same_audio=False,
    same_text=False, lines=[],
)  # fmt: skip


def look_back(request: Request, staging: StagingArea, features: Features, pool: Engine) -> Existing:
    """Collect what there is; rows of earlier builds are copied to the parts of this one."""
    cache, prior, lines, cached = request.cache, None, list[str](), NO_ROWS
    if request.fresh or not cache.is_dir():
        return NOTHING
    seed = request.config.split.seed
    staged = staging.finished(request.exclude)
    corpora = sorted({"", *request.corpora.roots, *(shard_place(slot).corpus for slot in staged)})
    if (cache / SPEC_FILE).exists():
        try:
            prior = load_prior(cache)
            corpora = sorted({*corpora, *(place.corpus for place in shard_places(prior.spec))})
            tasks = _groups_of(cache / prior.spec.index_file, first=len(staged))
            cached = _read(tasks, staging, seed, corpora, pool)
        except LockstepError as error:
            lines, prior = [f"{error.where}: {error.found}: the whole cache is built again"], None
    sidecars = [EarlierTask(number=number, source=staging.sidecar(slot)) for number, slot in enumerate(staged)]
    staged_rows = _read(iter(sidecars), staging, seed, corpora, pool)
    reusable = prior.usable(staging, request.exclude) if prior else {}
    new = {shard.file for shard in staged.values()} - {shard.file for shard in reusable.values()}
    if new:
        lines.append(f"an interrupted build left {len(new)} finished shards")
    same_audio, same_text = (prior is not None and prior.same_settings(features, name) for name in ("audio", "text"))
    every = prior.shards if prior else {}
    return Existing(
        prior=prior, cached=cached, reusable=_shards(reusable, every, cached, corpora), staged_rows=staged_rows,
        staged=_shards(staged, staged, staged_rows, corpora), same_audio=same_audio, same_text=same_text, lines=lines,
    )  # fmt: skip


def _groups_of(index: Path, first: int) -> Iterator[EarlierTask]:
    """A task for each row group of an index, numbered from `first` on."""
    with readable_index(index) as file:
        groups = file.num_row_groups
    return (EarlierTask(number=first + group, source=index.absolute(), row_group=group) for group in range(groups))


def _read(
    tasks: Iterator[EarlierTask], staging: StagingArea, seed: int, corpora: Sequence[str], pool: Engine
) -> EarlierColumns:
    parts = pool.run(partial(write_earlier, staging.parts, seed, corpora), tasks)
    return join_earlier(sorted(parts, key=lambda part: int(part.part[0]) if len(part) else -1))


def _shards(
    usable: Mapping[str, Finished], every: Mapping[str, Finished], rows: EarlierColumns, corpora: Sequence[str]
) -> Shards:
    """The shards that can be used, of those that the rows name."""
    number = {slot: number for number, slot in enumerate(every)}
    names = np.array([place_number(shard_place(slot), corpora) for slot in every], np.int64)
    order = np.argsort(names)
    of_row = np.full(len(rows), -1, np.int32)
    if len(names) and len(rows):
        at = np.minimum(np.searchsorted(names[order], rows.place), len(names) - 1)
        of_row = np.where(names[order][at] == rows.place, order[at], -1).astype(np.int32)
    clips = np.bincount(of_row[of_row >= 0], minlength=len(every))
    return Shards(finished=dict(usable), number=number, of_row=of_row, clips=clips)
