"""The whole examination, in the order in which it disturbs itself least, put together in the order of the page."""

from collections.abc import Callable

from xtts.trainer.device import accelerator
from xtts.trainer.doctor import settings
from xtts.trainer.doctor.environment import ReadSpeed, environment, read_speed
from xtts.trainer.doctor.finding import Fact, Report, Result
from xtts.trainer.doctor.graph import data_set_check, function_check, graph_of
from xtts.trainer.doctor.loading import data, disk_demand, load_times
from xtts.trainer.doctor.memory import available_bytes, free_host_bytes, memory
from xtts.trainer.doctor.shapes import shapes
from xtts.trainer.doctor.steps import (
    Arithmetic,
    StepTimes,
    arithmetic,
    host_entry,
    input_wait,
    measure_arithmetic,
    run_steps,
    steps,
)
from xtts.trainer.doctor.subject import Subject
from xtts.trainer.doctor.workload import Workload, data_sets, training_data
from xtts.trainer.failures import compile_fix, explained

_LOADED_BATCHES = 10
"""Batches loaded where no steps are asked for."""
Watch = Callable[[str], None]
"""Told what is being done."""


def examine(subject: Subject, *, count: int, search: bool, watch: Watch) -> Report:
    """Measure everything; `count` 0 compiles and runs no step, `search` looks for the largest batch."""
    asked, free = count > 0, free_host_bytes()
    watch("tracing the steps")
    workload = Workload(subject)
    watch("looking at the machine")
    speed = read_speed(
        subject.cache / s.file for bucket in subject.spec.buckets for s in bucket.train + bucket.validation
    )
    machine = environment(subject.cache, speed)
    if not _compiles(machine):
        count, search = 0, False
    with explained("compiling and running the steps", compile_fix()):
        fit, most, times, figures = _measure_steps(workload, count, search, watch)
    watch("reading batches")
    named = data_sets(subject)
    datasets = {name: dataset for name, (_, dataset) in named.items()}
    read = shapes(datasets, {name: workload.signatures[number] for name, (number, _) in named.items()})
    loads = load_times({n: training_data(subject, n) for n in subject.training_buckets}, batch_counts(subject, count))
    watch("walking the graphs")
    report = Report()
    report.add("environment", machine)
    # What fits into memory comes first: of two findings on one setting the overlay takes the first one's advice.
    report.add("config", *fit, *_settings(subject, figures, most, free))
    report.add("shapes", read)
    report.add("data", data(loads, step_seconds=times.mean if times else None), *_supply(subject, times, speed))
    if times and figures:
        calls = host_entry(times, subject.config.training)
        report.add("steps", steps(workload, times), calls, arithmetic(figures))
    elif asked:
        why = "they do not fit into memory" if count else "XLA does not compile here"
        report.add("steps", ([Fact(name="not run", value=True, text=why)], []))
    report.add("graph", data_set_check(datasets), *_graphs(workload))
    return report


def _compiles(machine: Result) -> bool:
    return any(fact.name == "xla" and fact.value["works"] for fact in machine[0])


def _measure_steps(
    workload: Workload, count: int, search: bool, watch: Watch
) -> tuple[list[Result], int | None, StepTimes | None, Arithmetic | None]:
    """(memory, largest batch expected to fit, times, arithmetic); steps that do not fit into memory are not run."""
    if not (count or search):
        return [], None, None, None
    watch(f"estimating the memory of a step{', looking for the largest batch' * search}: XLA compiles it for that")
    fit, most = memory(workload, available_bytes(), search=search)
    if not count or fit[1]:
        return [fit], most, None, None
    watch(f"compiling {len(workload.loop.sizes)} steps and running {count}")
    times = run_steps(workload, count)
    watch("counting and measuring FLOP/s")
    return [fit], most, times, measure_arithmetic(workload, times)


def _settings(subject: Subject, figures: Arithmetic | None, most: int | None, free_memory: int) -> list[Result]:
    config, spec = subject.config, subject.spec
    return [
        settings.disagreements(config, spec, subject.cache),
        settings.caps(subject.rows, config),
        settings.padding(subject.rows, spec),
        settings.batches(config, spec, subject.sizes, figures.share if figures else None, most),
        settings.reading(config, spec, subject.sizes, free_memory=free_memory, gpu=accelerator() is not None),
    ]


def _supply(subject: Subject, times: StepTimes | None, speed: ReadSpeed) -> list[Result]:
    if not times:
        return []
    buckets = [subject.spec.buckets[n] for n in subject.training_buckets]
    stored = sum(shard.bytes for bucket in buckets for shard in bucket.train)
    batches = sum(bucket.clips("train") / subject.sizes[n] for n, bucket in enumerate(subject.spec.buckets)
                  if bucket.clips("train"))  # fmt: skip
    demand = disk_demand(speed.bytes_per_second, stored / batches, stored, free_host_bytes(), times.mean)
    return [input_wait(times), demand]


def batch_counts(subject: Subject, count: int) -> dict[int, int]:
    """About `count` batches, divided over the training buckets as an epoch divides them, at least two each."""
    batches = {n: subject.spec.buckets[n].clips("train") / subject.sizes[n] for n in subject.training_buckets}
    share = (count or _LOADED_BATCHES) / sum(batches.values())
    return {n: max(2, round(share * number)) for n, number in batches.items()}


def _graphs(workload: Workload) -> list[Result]:
    kinds = {"training": workload.steps.gradient_steps, "validation": workload.steps.validation_steps}
    locked = {f"{kind} step of bucket {n:02d}": graph_of(step) for kind in kinds for n, step in kinds[kind].items()}
    locked["update of the weights"] = graph_of(workload.steps.update)
    return [function_check(locked), function_check({"training loop": workload.loop.graph}, static=False)]
