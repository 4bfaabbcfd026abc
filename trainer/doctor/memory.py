"""Memory of a locked step by XLA's own buffer assignment, made when it is compiled, before anything runs."""

import os
from collections.abc import Callable
from pathlib import Path

import tensorflow as tf

from xtts.trainer.dataset import batch_signature
from xtts.trainer.doctor.environment import driver
from xtts.trainer.doctor.finding import Fact, Finding, Result
from xtts.trainer.doctor.workload import Workload
from xtts.trainer.step import Steps

_USABLE = 0.9
"""Share of the free memory that a step may take; the rest is for the input pipeline, checkpoints and fragments."""
_MOST_COMPILATIONS = 5


def available_bytes() -> int:
    """Memory that the steps can have: of the first GPU where there is one, else what this system says is free."""
    if tf.config.list_physical_devices("GPU"):
        card = driver()
        if card and card["memory.total"].isdigit():  # a slice of a GPU does not tell
            return int(card["memory.total"]) << 20
    return free_host_bytes()


def free_host_bytes() -> int:
    """Memory of this machine that a process can still have, within its control group."""
    limits = [_meminfo()]
    for file in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        path = Path(file)
        if path.is_file() and (text := path.read_text(encoding="ascii").strip()).isdigit():
            limits.append(int(text))
    return min(limits)


def _meminfo() -> int:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable"))


def step_bytes(step: Callable[..., tf.Tensor], signature: list[tf.TensorSpec]) -> int:
    """Bytes of all buffers of one compiled step: weights, optimizer, batch, and the arena of everything between.

    XLA compiles the step once more for this: its cache keeps no buffer assignments.
    """
    from tensorflow.compiler.xla.service import hlo_pb2

    proto = step.experimental_get_compiler_ir(*signature)(stage="optimized_hlo_proto_serialized")  # type: ignore[attr-defined]
    buffers = hlo_pb2.HloProto.FromString(proto).buffer_assignment.buffer_allocations
    return sum(buffer.size for buffer in buffers if not buffer.is_thread_local)


def estimate(workload: Workload, batch_size: int) -> int:
    """`step_bytes` of the tallest bucket's step at `batch_size`, traced beside the locked set."""
    subject, steps = workload.subject, workload.steps
    signature = batch_signature(subject.spec, subject.spec.buckets[subject.tallest], batch_size)
    apart = Steps(steps.model, steps.optimizer, steps.training, steps.step)
    return step_bytes(apart.train(subject.tallest, signature), signature)


def memory(workload: Workload, free: int) -> Result:
    """The tallest step's memory against what there is."""
    subject, number = workload.subject, workload.subject.tallest
    needed = step_bytes(workload.steps.training_steps[number], workload.signatures[number])
    return fit(needed, free, size=subject.sizes[number], micro=subject.config.training.gradient_accumulation_steps)


def fit(needed: int, free: int, *, size: int, micro: int) -> Result:
    """`needed` bytes for a step of `size` clips in `micro` parts, against `free` bytes."""
    fact = Fact(
        name="memory", value={"step_bytes": needed, "available_bytes": free},
        text=f"{needed / 2**20:,.0f} MiB for the tallest step by XLA's buffer assignment, "
             f"{free / 2**20:,.0f} MiB available",
    )  # fmt: skip
    if needed <= _USABLE * free:
        return [fact], []
    fitting = max(int(size * _USABLE * free / needed) // micro, 1) * micro
    finding = Finding(
        section="config",
        what=f"a step of {size} clips needs {needed / 2**30:.1f} GiB, {free / 2**30:.1f} GiB are available",
        cause="training.batch_size is too large for the memory by XLA's buffer assignment",
        setting="training.batch_size" if size > micro else "training.gradient_accumulation_steps",
        value=fitting if size > micro else 2 * micro,
        fix="or let --find-batch-size find the largest that fits",
        gain="the step runs instead of failing for want of memory",
    )
    return [fact], [finding]


def largest_fitting(measure: Callable[[int], int], free: int, *, start: int, most: int, micro: int = 1) -> int:
    """The largest batch, a multiple of `micro` up to `most`, whose memory `measure(size)` is within `free` bytes.

    Memory is nearly a straight line over the batch: each compilation draws it through the nearest sizes known, and
    the answer lies between a size that fits and one that does not. 0 when not even one micro-batch fits.
    """
    limit, known = _USABLE * free, {}
    low, high = 0, most // micro + 1  # in micro-batches: `low` fits, `high` does not
    place = min(max(start // micro, 1), high - 1)
    for _ in range(_MOST_COMPILATIONS):
        if high - low <= 1:
            break
        known[place] = measure(place * micro)
        low, high = (place, high) if known[place] <= limit else (low, place)
        place = min(max(_next_place(known, low, high, limit), low + 1), high - 1)
    return low * micro


def _next_place(known: dict[int, int], low: int, high: int, limit: float) -> int:
    """Where the line through the two known sizes nearest to the answer meets `limit`; with one, half or twice it."""
    places = sorted(known)
    if low in known and high in known:
        pair = [low, high]
    else:
        pair = places[-2:] if low in known else places[:2]
    if len(pair) < 2:
        return 2 * low or high // 2
    slope = (known[pair[1]] - known[pair[0]]) / (pair[1] - pair[0])
    return int(pair[0] + (limit - known[pair[0]]) / slope) if slope > 0 else 2 * pair[1]


def find_batch_size(workload: Workload, free: int) -> Result:
    """The largest `training.batch_size` that fits; on a GPU the step of that size is run to prove it."""
    subject = workload.subject
    micro, now = subject.config.training.gradient_accumulation_steps, subject.sizes[subject.tallest]
    most = subject.spec.buckets[subject.tallest].clips("train")
    size = largest_fitting(lambda n: estimate(workload, n), free, start=now, most=most, micro=micro)
    proved = bool(tf.config.list_physical_devices("GPU"))
    while proved and size > micro and not _runs(workload, size):
        size = max(int(0.9 * size) // micro, 1) * micro
    limit = "all clips of the tallest bucket" if size + micro > most else "by memory"
    how = ", and ran" if proved else ""
    text = f"{size} in the tallest bucket ({limit}{how}); {now} now"
    return [Fact(name="largest batch", value={"batch_size": size, "proved": proved}, text=text)], []


def _runs(workload: Workload, size: int) -> bool:
    subject, steps = workload.subject, workload.steps
    signature = batch_signature(subject.spec, subject.spec.buckets[subject.tallest], size)
    step = Steps(steps.model, steps.optimizer, steps.training, steps.step).train(subject.tallest, signature)
    try:
        step(*(tf.zeros(part.shape, part.dtype) for part in signature))
    except tf.errors.ResourceExhaustedError:
        return False
    return True
