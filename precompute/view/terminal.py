"""Output of the commands: a progress bar on a terminal, plain lines elsewhere, and the tables at the end."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow.compute as pc
from rich import progress as bars
from rich.console import Console

from xtts.precompute.features.letter_counts import letter_lines
from xtts.precompute.features.recording_advice import ADVICE_TITLE, recording_advice
from xtts.precompute.features.tables import counted
from xtts.precompute.view.cached_clips import plain
from xtts.precompute.workers.worker_pool import Progress
from xtts.shared.cache.cache_spec import SPLITS, CacheSpec
from xtts.shared.cache.stats import PERCENTILE_NAMES, CorpusStats
from xtts.shared.errors import counted_noun
from xtts.shared.text.number_grammar import has_number_words

if TYPE_CHECKING:  # commands that only read a cache start without the feature extractor
    from xtts.precompute.pipeline.build_cache import BuildReport

_PLAIN_SECONDS = 10.0
"""Time between two lines of progress without a terminal."""
_NAMED = 5


class Display(Progress):
    """A progress bar: clips, clips/s, speed as a multiple of real time, time left."""

    def __init__(self) -> None:
        self._console = Console(stderr=True)
        columns = (
            bars.TextColumn("{task.description:8}"), bars.BarColumn(), bars.MofNCompleteColumn(),
            bars.TextColumn("clips  {task.fields[speed]}"), bars.TimeRemainingColumn(), bars.TextColumn("left"),
        )
        self._progress = bars.Progress(
            *columns, console=self._console, transient=True, disable=not self._console.is_terminal
        )
        self._task = self._progress.add_task("", visible=False, speed="", seconds=0.0)
        self._reported = time.monotonic()

    def __enter__(self) -> "Display":
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def say(self, text: str) -> None:
        """Print a line above the bar."""
        self._console.print(text, highlight=False, soft_wrap=True, markup=False)

    def start(self, stage: str, clips: int) -> None:
        """Begin a bar."""
        self._reported = time.monotonic()
        self._progress.reset(self._task, total=clips, visible=clips > 0, description=stage, speed="", seconds=0.0)

    def advance(self, clips: int, seconds: float) -> None:
        """Advance the bar, or print a line every `_PLAIN_SECONDS`."""
        (task,) = self._progress.tasks
        done, seconds, wall = task.completed + clips, task.fields["seconds"] + seconds, max(1e-6, task.elapsed or 0.0)
        speed = f"{done / wall:.0f} clips/s" + (f", {seconds / wall:.0f}x real time" if seconds else "")
        self._progress.update(self._task, completed=done, speed=speed, seconds=seconds)
        is_due = task.finished or time.monotonic() - self._reported > _PLAIN_SECONDS
        if self._progress.disable and is_due:
            self._reported = time.monotonic()
            left = f", {task.remaining * wall / done:.0f} s left" if task.remaining and done else ""
            self.say(f"{task.description}: {done}/{task.total} clips, {speed}{left}")


def _table(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("  " + "  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True)) for row in rows)


def build_summary(report: "BuildReport", cache: str) -> str:
    """Return the lines that summarize a build."""
    spec, figures = report.spec, report.spec.statistics
    lines = [
        f"{counted_noun(figures.clips, 'clip')} kept ({figures.seconds / 3600:.2f} h), {figures.rejected} rejected"
    ]
    lines += [f"  {plain(line)}" for line in report.reject_lines]
    for kind in ("speaker", "language"):
        if named := [f"{plain(name)} {count:,}" for name, count in counted(report.clips[kind]).items() if name]:
            lines.append(f"{kind}s: {len(named):,} ({', '.join(named[:_NAMED])}{', ...' * (len(named) > _NAMED)})")
    if unnormalised := len(report.clips) - pc.sum(report.clips["normalised"]).as_py():
        has_words = spec.features["text"]["expand_numbers"] and all(map(has_number_words, spec.languages))
        words = "put into words" if has_words else "as they are"
        lines.append(f"{unnormalised} texts have no normalised column: their numbers are {words}")
    lines += letter_lines(report.letters)
    if not spec.holds_crops and (advice := recording_advice(report.quality, spec.features["audio"]["loudness_lufs"])):
        lines += [ADVICE_TITLE, *advice]
    lines += [
        bucket_table(spec, report.fill),
        f"padding efficiency {figures.fill:.1%} (useful frames / stored frames)",
    ]
    if report.changed:
        shards = f"{counted_noun(report.written_shards, 'shard')} written, {report.kept_shards} kept"
    else:
        shards = f"nothing to do, {counted_noun(report.kept_shards, 'shard')} kept"
    peak, total = report.peak_bytes, sum(shard.bytes for shard in spec.shards())
    memory = f"memory at most {peak / 2**20:.0f} MiB" if peak else "memory not known"
    size = f"{total / 2**30:.2f} GiB" if total >= 2**30 else f"{total / 2**20:.1f} MiB"
    return "\n".join([*lines, f"{cache}: {size}, {shards}, {report.wall_seconds:.1f} s, {memory}"])


def bucket_table(spec: CacheSpec, fill: Sequence[float]) -> str:
    """Return a table of the buckets: shapes, counts of clips and shards, useful frames / stored frames."""
    rows = [["bucket", "tokens", "frames", "train", "validation", "shards", "efficiency"]]
    for position, bucket in enumerate(spec.buckets):
        clips = [str(bucket.clips(split)) for split in SPLITS]
        shards = str(len(bucket.train) + len(bucket.validation))
        cells = [f"{position:02d}", str(bucket.tokens), str(bucket.frames), *clips, shards]
        rows.append([*cells, f"{fill[position]:.1%}"])
    return _table(rows)


def stats_text(stats: CorpusStats, rejected: Sequence[str]) -> str:
    """Return the tables of `xtts-precompute stats`; rejected: as from `reject_lines`."""
    lines = [f"{counted_noun(stats.clips, 'clip')} kept, {stats.hours:.2f} h, {stats.rejected} rejected"]
    lines += [f"  {plain(line)}" for line in rejected]
    lengths = [["percentile", *PERCENTILE_NAMES]]
    for name, values in stats.percentiles.items():
        lengths.append([name, *(f"{v:.2f}" if name == "seconds" else f"{v:.0f}" for v in values)])
    plans = [["buckets", "padding efficiency", "padded lengths"]]
    plans += [[str(n), f"{stats.fill[n]:.1%}", " ".join(map(str, stats.padded_lengths[n]))] for n in stats.fill]
    return "\n".join([*lines, "", _table(lengths), "", _table(plans)])
