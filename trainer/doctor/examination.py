"""The whole examination: run in the order that disturbs the measurements least, reported in the order of the page."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from xtts.trainer.data.dataset import training_batches
from xtts.trainer.doctor.checks import settings
from xtts.trainer.doctor.checks.audio import mel_parity
from xtts.trainer.doctor.checks.environment import ReadSpeed, environment, read_speed
from xtts.trainer.doctor.checks.graph import data_set_check, function_check, graph_of
from xtts.trainer.doctor.checks.loading import data, disk_demand, load_times
from xtts.trainer.doctor.checks.memory import available_bytes, free_host_bytes, memory
from xtts.trainer.doctor.checks.pauses import measure_pauses, pauses
from xtts.trainer.doctor.checks.run import overfitting
from xtts.trainer.doctor.checks.shapes import shapes
from xtts.trainer.doctor.checks.steps import (
    Arithmetic,
    StepTimes,
    arithmetic,
    host_entry,
    input_wait,
    measure_arithmetic,
    run_steps,
    steps,
)
from xtts.trainer.doctor.finding import Fact, Report, Result
from xtts.trainer.doctor.subject import Subject
from xtts.trainer.doctor.workload import Workload, data_sets
from xtts.trainer.engine.engine import TracedSteps
from xtts.trainer.engine.failures import compile_fix, explained
from xtts.trainer.system.device import accelerator

_LOADED_BATCHES = 10
"""Batches loaded when no steps are requested."""
Progress = Callable[[str], None]
"""Called with a description of the current work."""


def examine(
    subject: Subject, *, count: int, search: bool, progress: Progress, run: Path | None = None,
    traced: TracedSteps | None = None,
) -> Report:  # fmt: skip
    """Measure everything.

    count: steps to run, 0 compiles none; search: find the largest batch; run: a folder to look at, too; traced: as for
    `Workload`.
    """
    history = [overfitting(run)] if run else []
    asked, free = count > 0, free_host_bytes()
    progress("reading shards from the disk")  # before the workload, whose pipelines start reading at once
    speed = read_speed(
        subject.cache / s.file for bucket in subject.spec.buckets for s in bucket.train + bucket.validation
    )
    progress("tracing the steps")
    workload = Workload(subject, traced)
    progress("looking at the machine")
    machine = environment(subject.cache, speed)
    if not _compiles(machine):
        count, search = 0, False
    with explained("compiling and running the steps", compile_fix()):
        measured = _measure_steps(workload, count, search, progress)
    times, figures = measured.times, measured.figures
    progress("reading batches")
    named = data_sets(workload.buckets.values())
    datasets = {name: dataset for name, (_, dataset) in named.items()}
    read = shapes(datasets, {name: bucket.signature for name, (bucket, _) in named.items()})
    training = {bucket.number: training_batches(bucket, 0) for bucket in workload.loop.buckets}
    loads = load_times(training, batch_counts(subject, count))
    progress("walking the graphs")
    report = Report()
    report.add("environment", machine)
    # Memory comes first: of two findings on one setting the overlay takes the first.
    report.add("config", *measured.fit, *_settings(subject, figures, measured.most, free))
    report.add("shapes", read)
    mel_on = subject.config.data.mel_on if subject.spec.names_audio else ""
    loading = data(loads, step_seconds=times.mean if times else None, mel_on=mel_on)
    report.add("data", loading, *_supply(subject, times, speed), *([mel_parity(subject)] if mel_on else []))
    if times and figures:
        calls = host_entry(times, subject.config.training)
        stops = pauses(measured.pause_seconds, subject.config.training, step_seconds=float(times.whole.mean()))
        report.add("steps", steps(workload, times), calls, stops, arithmetic(figures))
    elif asked:
        why = "they do not fit into memory" if count else "XLA does not compile here"
        report.add("steps", ([Fact(name="not run", value=True, text=why)], []))
    report.add("graph", data_set_check(datasets), *_graphs(workload))
    if history:
        report.add("run", *history)
    return report


def _compiles(machine: Result) -> bool:
    return any(fact.name == "xla" and fact.value["works"] for fact in machine[0])


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Results of compiling and running steps; empty when no steps are requested."""

    fit: list[Result] = field(default_factory=list)
    """Memory that a step needs, against what is available."""
    most: int | None = None
    """Largest batch expected to fit."""
    times: StepTimes | None = None
    figures: Arithmetic | None = None
    pause_seconds: dict[str, float] = field(default_factory=dict)


def _measure_steps(workload: Workload, count: int, search: bool, progress: Progress) -> Measured:
    """Compile and run `count` steps, then the pauses between them; steps that do not fit into memory are not run."""
    if not (count or search):
        return Measured()
    progress(f"estimating the memory of a step{', looking for the largest batch' * search}: XLA compiles it for that")
    fit, most = memory(workload, available_bytes(), search=search)
    if not count or fit[1]:
        return Measured(fit=[fit], most=most)
    progress(f"compiling {len(workload.loop.buckets)} steps and running {count}")
    times = run_steps(workload, count)
    progress("counting and measuring FLOP/s")
    figures = measure_arithmetic(workload, times)
    progress("measuring validation, samples and a checkpoint")
    return Measured(fit=[fit], most=most, times=times, figures=figures, pause_seconds=measure_pauses(workload))


def _settings(subject: Subject, figures: Arithmetic | None, most: int | None, free_memory: int) -> list[Result]:
    config, spec = subject.config, subject.spec
    return [
        settings.disagreements(config, spec, subject.cache),
        settings.caps(subject.lengths, config),
        settings.padding(subject.lengths, spec),
        settings.batches(config, spec, subject.sizes, figures.share if figures else None, most),
        settings.reading(config, spec, subject.sizes, free_memory=free_memory, gpu=accelerator() is not None),
    ]


def _supply(subject: Subject, times: StepTimes | None, speed: ReadSpeed) -> list[Result]:
    if not times:
        return []
    if subject.spec.names_audio:  # the load times have read the wavs
        return [input_wait(times)]
    buckets = [subject.spec.buckets[n] for n in subject.bucket_numbers("train")]
    stored = sum(shard.bytes for bucket in buckets for shard in bucket.train)
    batches = sum(bucket.clips("train") / subject.sizes[n] for n, bucket in enumerate(subject.spec.buckets)
                  if bucket.clips("train"))  # fmt: skip
    demand = disk_demand(speed.bytes_per_second, stored / batches, stored, free_host_bytes(), times.mean)
    return [input_wait(times), demand]


def batch_counts(subject: Subject, count: int) -> dict[int, int]:
    """About `count` batches, split over the training buckets as in an epoch, at least two each."""
    spec, sizes = subject.spec, subject.sizes
    batches = {n: spec.epoch_clips(spec.buckets[n]) / sizes[n] for n in subject.bucket_numbers("train")}
    share = (count or _LOADED_BATCHES) / sum(batches.values())
    return {n: max(2, round(share * number)) for n, number in batches.items()}


def _graphs(workload: Workload) -> list[Result]:
    kinds = {"training": workload.steps.gradient_steps, "validation": workload.steps.validation_steps}
    locked = {f"{kind} step of bucket {n:02d}": graph_of(step) for kind in kinds for n, step in kinds[kind].items()}
    locked["update of the weights"] = graph_of(workload.steps.update)
    return [function_check(locked), function_check({"training loop": workload.loop.graph}, static=False)]
