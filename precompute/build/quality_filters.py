"""Keeping out clips by `data.filters`: by header and text at once, by their samples after measuring them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from xtts.precompute.build.shard_plan import apply_filters
from xtts.precompute.corpus.front_end import FrontEnd
from xtts.precompute.features.extract import measure_clips
from xtts.precompute.features.scan import Scanned, ScannedRow, in_chunks, same_file
from xtts.precompute.workers.engine import Engine
from xtts.precompute.workers.progress import Progress
from xtts.shared.audio.decode import source_rate
from xtts.shared.audio.signal_quality import SignalQuality
from xtts.shared.cache.clip_index import IndexRow, Rejected, Rejection
from xtts.shared.cache.quality_stats import letters_per_second
from xtts.shared.config import Config, FilterConfig

Earlier = Sequence[Mapping[str, IndexRow]]
"""Rows of earlier builds by clip id."""


@dataclass(frozen=True, slots=True)
class _Check:
    """A measured value beside the limit of one filter."""

    reason: str
    setting: str
    found: float
    unit: str
    least: float | None = None
    most: float | None = None

    @property
    def rejection(self) -> Rejection | None:
        """None where the filter is off or the clip passes."""
        limit = self.most if self.least is None else self.least
        passes = self.found <= self.most if self.most is not None else self.least is None or self.found >= self.least
        if limit is None or passes:
            return None
        return Rejection(self.reason, f"{self.found:.6g} {self.unit}, data.filters.{self.setting} is {limit:.6g}")


def filter_clips(
    rows: Sequence[ScannedRow], config: Config, front_end: FrontEnd, earlier: Earlier, pool: Engine,
    progress: Progress,
) -> list[ScannedRow]:  # fmt: skip
    """Reject by lengths, then by the filters of quality that are set; what is rejected already stays so.

    A clip is decoded only if a filter asks for its samples, nothing else rejects it, and no earlier build measured it.
    Kept rows carry what is known of their quality, rejected ones only where it is the reason.
    """
    filters, rate = config.data.filters, front_end.profile.sample_rate
    by_header = (_by_header(apply_filters(row, config), filters, rate) for row in rows)
    judged = [row if isinstance(row, Rejected) else _recalled(row, earlier) for row in by_header]
    if not _ask_for_samples(filters):
        return judged
    for number, quality in _measure(judged, front_end, earlier, pool, progress):
        row = judged[number]
        assert isinstance(row, Scanned)
        judged[number] = replace(row, quality=quality)
    return [_by_signal(row, filters) for row in judged]


def _by_header(row: ScannedRow, filters: FilterConfig, rate: int) -> ScannedRow:
    if isinstance(row, Rejected):
        return row
    hertz, letters = source_rate(row.audio.notes, rate), letters_per_second(row.clip, row.audio)
    slowest, fastest = filters.min_letters_per_second, filters.max_letters_per_second
    checks = (
        _Check("too low sample rate", "min_sample_rate", hertz, "Hz", least=filters.min_sample_rate),
        _Check("too slow speech", "min_letters_per_second", letters, "letters a second", least=slowest),
        _Check("too fast speech", "max_letters_per_second", letters, "letters a second", most=fastest),
    )
    why = next(filter(None, (check.rejection for check in checks)), None)
    return row if why is None else row.rejected(why)


def _by_signal(row: ScannedRow, filters: FilterConfig) -> ScannedRow:
    if isinstance(row, Rejected) or row.quality is None:
        return row
    quality, silence = row.quality, filters.max_edge_silence_seconds
    checks = (
        _Check("too quiet", "min_loudness_db", quality.loudness_db, "dBFS", least=filters.min_loudness_db),
        _Check("too noisy", "max_noise_floor_db", quality.noise_floor_db, "dBFS", most=filters.max_noise_floor_db),
        _Check("clipped", "max_clipped_share", quality.clipped_share, "of the samples", most=filters.max_clipped_share),
        _Check("too much silence", "max_edge_silence_seconds", quality.edge_silence, "s", most=silence),
    )
    why = next(filter(None, (check.rejection for check in checks)), None)
    return row if why is None else replace(row.rejected(why), quality=quality)


def _ask_for_samples(filters: FilterConfig) -> bool:
    limits = (filters.min_loudness_db, filters.max_noise_floor_db, filters.max_clipped_share)
    return any(limit is not None for limit in (*limits, filters.max_edge_silence_seconds))


def _recalled(row: Scanned, earlier: Earlier) -> Scanned:
    """The row with what an earlier build measured on the same file."""
    for rows in earlier:
        was = rows.get(row.clip.id)
        if was is not None and was.quality is not None and same_file(row, was):
            return replace(row, quality=was.quality)
    return row


def _measure(
    rows: Sequence[ScannedRow], front_end: FrontEnd, earlier: Earlier, pool: Engine, progress: Progress
) -> Iterator[tuple[int, SignalQuality | None]]:
    """Numbers of the rows whose quality is not known, with what was measured."""
    unknown = [
        (number, row)
        for number, row in enumerate(rows)
        if isinstance(row, Scanned) and row.quality is None and not _was_of_no_use(row, earlier)
    ]
    if not unknown:
        return
    progress.start("measure", len(unknown), sum(row.audio.seconds for _, row in unknown))
    for measured in pool.run(partial(measure_clips, front_end), in_chunks(unknown, front_end, lambda job: job[1].clip)):
        yield from measured
        seconds = [row.audio.seconds for number, _ in measured if isinstance(row := rows[number], Scanned)]
        progress.advance(len(measured), sum(seconds))


def _was_of_no_use(row: Scanned, earlier: Earlier) -> bool:
    """Whether writing its record showed before that the file holds no usable audio."""
    found = (rows.get(row.clip.id) for rows in earlier)
    return any(isinstance(was, Rejected) and was.place is not None and same_file(row, was) for was in found)
