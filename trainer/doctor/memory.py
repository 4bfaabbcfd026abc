"""Memory of a locked step by XLA's buffer assignment, known after compiling and before anything runs."""

import math
import os
from collections.abc import Callable, Iterable
from pathlib import Path

import tensorflow as tf

from xtts.shared.cache.cache_spec import CacheSpec
from xtts.trainer.data.batch import Batch, blank_batch
from xtts.trainer.data.batch_sizes import batch_sizes, bucket_numbers, typical_update
from xtts.trainer.doctor.environment import driver
from xtts.trainer.doctor.results import Fact, Problem, Result
from xtts.trainer.doctor.speed import Workload
from xtts.trainer.engine.train_step import Steps
from xtts.trainer.system.device import accelerator

_USABLE = 0.9
"""Share of the free memory that a step may take; the rest is for the input pipeline, checkpoints and fragments."""
_CLOSE = 0.95
"""Use of that share at which the search for a larger batch stops."""
_MOST_COMPILATIONS = 5
_CONTROL_GROUPS = Path("/sys/fs/cgroup")
_GROUP_FILES = (
    ("memory.max", "memory.current", "memory.stat", "inactive_file"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat", "total_inactive_file"),
)
"""Limit, use, and the part of the use that is reclaimable file cache, of cgroup version 2 and version 1."""


def available_bytes() -> int | None:
    """Memory available to the steps, on the GPU or else on this machine; None where the driver does not report it."""
    if not accelerator():
        return free_host_bytes()
    card = driver()
    return int(card["memory.total"]) << 20 if card and card["memory.total"].isdigit() else None


def free_host_bytes() -> int:
    """Memory of this machine that a process can still allocate, within its cgroup."""
    return min([_meminfo(), *_group_bytes()])


def _group_bytes() -> Iterable[int]:
    """What the cgroup, if it has a limit, leaves."""
    for names in _GROUP_FILES:
        limit, usage, stat = (_CONTROL_GROUPS / name for name in names[:3])
        if limit.is_file() and (text := limit.read_text(encoding="ascii").strip()).isdigit():
            counts = dict(line.split() for line in stat.read_text(encoding="ascii").splitlines())
            used = int(usage.read_text(encoding="ascii")) - int(counts.get(names[3], 0))
            yield max(int(text) - used, 0)


def _meminfo() -> int:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable"))


def step_bytes(steps: Steps, bucket: int, signature: Batch) -> int:
    """Bytes of a training step: XLA's buffers for the gradients (weights, batch, arena), plus the update's arrays.

    XLA compiles the gradients again for this: its cache keeps no buffer assignments.
    """
    from tensorflow.compiler.xla.service import hlo_pb2

    compiler_ir = steps.gradient_steps[bucket].experimental_get_compiler_ir(*signature)  # type: ignore[attr-defined]
    proto = compiler_ir(stage="optimized_hlo_proto_serialized")
    buffers = hlo_pb2.HloProto.FromString(proto).buffer_assignment.buffer_allocations
    return int(sum(buffer.size for buffer in buffers if not buffer.is_thread_local)) + 3 * weight_bytes(steps)


def weight_bytes(steps: Steps) -> int:
    """Bytes of the weights; each of the two moments and the averages takes as much."""
    return int(sum(math.prod(weight.shape) * tf.as_dtype(weight.dtype).size for weight in steps.optimizer.weights))


def largest_step(spec: CacheSpec, sizes: dict[int, int]) -> int:
    """The training bucket whose step takes the most memory, by clips x frames; of equals the longest.

    It need not be the longest of all, which may hold only a few outliers, fewer than a batch.
    """
    frames = {number: spec.buckets[number].frames for number in bucket_numbers(spec, "train")}
    return max(frames, key=lambda number: (sizes[number] * frames[number], frames[number]))


def memory(workload: Workload, free: int | None, *, search: bool) -> Result:
    """Check the largest step against `free` bytes.

    free: None if unknown; then there is no verdict.
    search: find the largest batch, on a GPU by running its step too. Without it, search only if the configured step
    does not fit.
    """
    spec, training = workload.setup.spec, workload.setup.config.training
    number = largest_step(spec, workload.setup.sizes)
    needed = step_bytes(workload.steps, number, workload.buckets[number].signature)
    shape = f"{workload.setup.sizes[number]} clips x {spec.buckets[number].frames} frames"
    available = f"{free / 2**20:,.0f} MiB available" if free is not None else "the driver does not report the memory"
    facts = [Fact(
        name="memory", value={"step_bytes": needed, "available_bytes": free},
        text=f"{needed / 2**20:,.0f} MiB for the largest step ({shape}) by XLA's buffer assignment, {available}",
    )]  # fmt: skip
    if free is None:
        unknown = Fact(name="largest batch", value=None, text="not searched: the available memory is unknown")
        return facts + [unknown] * search, []
    limit, micro = _USABLE * free, training.gradient_accumulation_steps
    every = max(spec.epoch_clips(spec.buckets[bucket]) for bucket in bucket_numbers(spec, "train")) // micro * micro
    now = min(training.batch_size, every)  # a larger setting gives the same batches
    if needed <= limit and not search:
        return facts, []
    most = every if search else now
    kept = 4 * weight_bytes(workload.steps)  # what a step takes before its first clip
    size = largest_fitting(
        lambda size: step_bytes(*_largest_of(workload, size)), limit, known={0: kept, now: needed}, most=most,
        micro=micro,
    )  # fmt: skip
    if search:
        size, proved = _prove(workload, size, micro)
        facts.append(_found(size, training.batch_size, by_clips=size == most, proved=proved))
    if size >= now:
        return facts, []
    what = f"the largest step, {shape}, needs {needed / 2**30:.1f} GiB, {free / 2**30:.1f} GiB are available"
    return facts, [_too_large(what, size)]


def _too_large(what: str, fitting: int) -> Problem:
    if fitting:
        cause, fix = (
            "training.batch_size is too large for the memory",
            "or let --find-batch-size find the largest that fits",
        )
    else:
        cause = "it is too large even with one clip per micro-batch, so no batch setting helps"
        fix = "free memory, use a smaller model.size, or exclude the longest clips with shapes.max_mel_frames"
    return Problem(
        name="out-of-memory",
        what=what,
        cause=cause,
        setting="training.batch_size" if fitting else "",
        value=fitting or None,
        fix=fix,
        gain="the step runs instead of running out of memory",
    )


def _found(size: int, now: int, *, by_clips: bool, proved: bool) -> Fact:
    limit = "all clips of every bucket" if by_clips else "by memory"
    text = f"{size} ({limit}{', and its largest step ran' if proved else ''}); {now} now" if size else "none fits"
    return Fact(name="largest batch", value={"batch_size": size, "proved": proved}, text=text)


def largest_fitting(
    measure: Callable[[int], int], limit: float, *, known: dict[int, int], most: int, micro: int = 1
) -> int:
    """The largest batch, a multiple of `micro` up to `most`, whose memory `measure(size)` is within `limit` bytes.

    known: memory of some batch, and of 0 clips, the minimum for any batch.

    Memory is almost linear in the batch size. Each compilation interpolates between the nearest known sizes, which
    bracket the answer. 0 if not even one micro-batch fits.
    """
    known = {size // micro: needed for size, needed in known.items()}  # by micro-batches
    for tried in range(_MOST_COMPILATIONS + 1):
        low = max((place for place in known if place and known[place] <= limit), default=0)
        high = min((place for place in known if place and known[place] > limit), default=most // micro + 1)
        if tried == _MOST_COMPILATIONS or high - low <= 1 or (low and known[low] >= _CLOSE * limit):
            break
        last = tried == _MOST_COMPILATIONS - 1
        place = 1 if last and not low else min(max(_next_place(known, low, high, limit), low + 1), high - 1)
        known[place] = measure(place * micro)
    return low * micro


def _next_place(known: dict[int, int], low: int, high: int, limit: float) -> int:
    """Where the line through the two known sizes nearest to the answer meets `limit`.

    The memory of 0 clips is used only if there is no other: it is too low, since it excludes gradients.
    """
    near, far = sorted(known, key=lambda place: (place == 0, abs(known[place] - limit)))[:2]
    slope = (known[near] - known[far]) / (near - far)
    return int(near + (limit - known[near]) / slope) if slope > 0 else 2 * low or high // 2


def _largest_of(workload: Workload, batch_size: int) -> tuple[Steps, int, Batch]:
    """The largest step that `training.batch_size` would give, traced outside the locked set: its bucket and batch."""
    spec, steps = workload.setup.spec, workload.steps
    sizes = batch_sizes(spec, steps.training.model_copy(update={"batch_size": batch_size}))
    number = largest_step(spec, sizes)
    locked = workload.buckets[number].signature
    signature = Batch(*(tf.TensorSpec([sizes[number], *part.shape[1:]], part.dtype, part.name) for part in locked))
    typical = typical_update(spec, sizes)
    alone = Steps(steps.model, steps.optimizer, steps.training, steps.step, typical=typical)
    alone.with_mel = steps.with_mel
    alone.trace({number: signature})
    return alone, number, signature


def _prove(workload: Workload, size: int, micro: int) -> tuple[int, bool]:
    """(largest batch from `size` down whose largest step runs, whether one ran); tried on a GPU only."""
    if not accelerator():
        return size, False
    while size:
        steps, number, signature = _largest_of(workload, size)
        try:
            steps.train(number, blank_batch(signature)).numpy()  # a GPU reports an error only when the result is read
        except tf.errors.ResourceExhaustedError:
            size = int(0.9 * size) // micro * micro
        else:
            return size, True
    return 0, False
