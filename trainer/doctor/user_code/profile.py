"""TensorFlow's profiler around a few steps: a trace for TensorBoard, a summary for the terminal."""

import re
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tensorflow as tf

from xtts.shared.errors import LockstepError
from xtts.trainer.doctor.finding import Fact, Report
from xtts.trainer.doctor.workload import Workload
from xtts.trainer.system.device import accelerator

_CPU_STEP = "CpuExecutable::ExecuteAsyncOnStream"
"""The host event that spans a compiled step on the CPU."""
_TRANSFERS = ("MemcpyH2D", "MemcpyD2H", "MemcpyP2P")
"""Work of a GPU's streams that does not use its processors."""
_TOP = 12
Span = tuple[int, int]
"""Start and end, picoseconds."""


@dataclass(frozen=True, kw_only=True)
class Profile:
    """Sums over one trace."""

    folder: Path
    wall: float
    """Seconds of the whole call, measured on the host."""
    busy: float
    """Seconds in which the device was busy."""
    waiting: float
    """Seconds in which a step waited for its batch, measured by the loop."""
    ops: list[tuple[str, float, int]]
    """(kind, seconds without nested ops, count), longest first. On a CPU only the thread that runs the step counts:
    work that an op hands to other threads is not traced."""


def profile_call(call: Callable[[], float], folder: Path) -> Profile:
    """Run `call`, which returns the seconds it waited for batches, under the profiler: `folder`/plugins/profile."""
    before = set(_traces(folder))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tf.profiler.experimental.start(str(folder))
    except (OSError, tf.errors.OpError) as error:
        raise LockstepError(str(folder), found=f"cannot be profiled into ({error})") from None
    began = time.perf_counter()
    waiting = call()
    wall = time.perf_counter() - began
    tf.profiler.experimental.stop()
    new = sorted(set(_traces(folder)) - before)
    if not new:
        raise LockstepError(str(folder), found="the profiler wrote no trace", fix="close other profilers of this GPU")
    return summarise(new[-1], wall, waiting)


def _traces(folder: Path) -> Iterable[Path]:
    return folder.glob("plugins/profile/*/*.xplane.pb")


def summarise(trace: Path, wall: float, waiting: float) -> Profile:
    """Summarise an `.xplane.pb` file; `LockstepError` if it has no events of the device."""
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    space = xplane_pb2.XSpace.FromString(trace.read_bytes())
    host = [line for plane in space.planes if plane.name == "/host:CPU" for line in _lines(plane)]
    streams = [
        spans
        for plane in space.planes
        if plane.name.startswith("/device:GPU")
        for name, spans in _lines(plane)
        if name.startswith("Stream")
    ]
    steps = merged(span for _, spans in host for event, span in spans if event == _CPU_STEP)
    # On a GPU count its streams; on the CPU all that runs during a compiled step, except the executor's own events.
    if accelerator():
        busy, ops = merged(span for spans in streams for op, span in spans if not op.startswith(_TRANSFERS)), streams
    else:
        ops = [[item for item in spans if is_xla_op(item[0]) and _inside(item[1], steps)] for _, spans in host]
        busy = steps
    if not busy:
        fix = "let users profile the GPU (NVreg_RestrictProfilingToAdminUsers=0) and put CUPTI on the library path"
        raise LockstepError(
            str(trace), found="no compiled step in the trace", fix=fix if accelerator() else "profile more --steps"
        )
    return Profile(folder=trace.parent, wall=wall, busy=_seconds(busy), waiting=waiting, ops=top_ops(ops))


def _lines(plane: Any) -> Iterator[tuple[str, list[tuple[str, Span]]]]:  # noqa: ANN401 - a protocol buffer
    names = {number: metadata.name for number, metadata in plane.event_metadata.items()}
    for line in plane.lines:
        start = line.timestamp_ns * 1000
        yield (
            line.name,
            [
                (names[event.metadata_id], (start + event.offset_ps, start + event.offset_ps + event.duration_ps))
                for event in line.events
            ],
        )


def is_xla_op(name: str) -> bool:
    """True for the name of an XLA instruction; TensorFlow's events have colons and capitals."""
    return re.fullmatch(r"[a-z_][\w.\-]*", name) is not None


def merged(spans: Iterable[Span]) -> list[Span]:
    """The union of the spans as ordered spans that do not overlap."""
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return joined


def _seconds(spans: list[Span]) -> float:
    return sum(end - start for start, end in spans) / 1e12


def _inside(span: Span, spans: list[Span]) -> bool:
    place = bisect_right(spans, (span[0], 1 << 63)) - 1
    return place >= 0 and span[1] <= spans[place][1]


def top_ops(lines: Iterable[list[tuple[str, Span]]]) -> list[tuple[str, float, int]]:
    """(kind, own seconds, count) of the kinds with the most time; a kind is a name without its number."""
    seconds: dict[str, int] = {}
    counts: dict[str, int] = {}
    for line in lines:
        open_ops: list[tuple[str, int]] = []  # ops that enclose the next one: (kind, end)
        for name, (start, end) in sorted(line, key=lambda item: (item[1][0], -item[1][1])):
            kind = re.sub(r"([._]\d+)+$", "", name)
            while open_ops and open_ops[-1][1] <= start:
                open_ops.pop()
            if open_ops:
                seconds[open_ops[-1][0]] -= end - start
            seconds[kind] = seconds.get(kind, 0) + end - start
            counts[kind] = counts.get(kind, 0) + 1
            open_ops.append((kind, end))
    longest = sorted(seconds, key=lambda kind: -seconds[kind])[:_TOP]
    return [(kind, seconds[kind] / 1e12, counts[kind]) for kind in longest]


def profile_steps(workload: Workload, count: int, folder: Path) -> Profile:
    """Compile every bucket's step, then profile `count` steps in one host call."""
    workload.prepare()
    return profile_call(lambda: float(workload.loop.run(count).wait_seconds.sum()), folder)


def report_of(profile: Profile, count: int) -> Report:
    """The summary as a page."""
    share, waiting = profile.busy / profile.wall, profile.waiting / profile.wall
    facts = [
        Fact(name="trace", value=str(profile.folder), text=str(profile.folder)),
        Fact(name="steps", value={"count": count, "seconds": profile.wall},
             text=f"{count} in {profile.wall:.3f} s, {1000 * profile.wall / count:.1f} ms each under the profiler"),
        Fact(name="device busy", value=share, text=f"{share:.1%} of the time"),
        Fact(name="input wait", value=waiting, text=f"{waiting:.1%} of the time"),
        Fact(name="top ops", value=len(profile.ops), text="share of the busy time, time, count"),
    ]  # fmt: skip
    for kind, seconds, number in profile.ops:
        text = f"{seconds / max(profile.busy, 1e-12):6.1%}  {1000 * seconds:9.1f} ms  {number:7,} times"
        facts.append(Fact(name=kind, value={"seconds": seconds, "count": number}, text=text))
    report = Report()
    report.add("profile", (facts, []))
    return report
