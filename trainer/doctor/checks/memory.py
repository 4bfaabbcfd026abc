"""Memory of a locked step by XLA's own buffer assignment, made when it is compiled, before anything runs."""

import math
import os
from collections.abc import Callable, Iterable
from pathlib import Path

import tensorflow as tf

from xtts.shared.cache.cache_spec import CacheSpec
from xtts.shared.errors import LockstepError
from xtts.trainer.data.batch import Batch, batch_signature, blank_batch
from xtts.trainer.data.batch_sizes import batch_sizes, bucket_numbers
from xtts.trainer.doctor.finding import Fact, Finding, Result
from xtts.trainer.doctor.workload import Workload
from xtts.trainer.engine.train_step import Steps
from xtts.trainer.system.device import accelerator

_USABLE = 0.9
"""Share of the free memory that a step may take; the rest is for the input pipeline, checkpoints and fragments."""
_CLOSE = 0.95
"""Share of what a step may take from which on no larger batch is looked for."""
_MOST_COMPILATIONS = 5
_RUNS = "the step runs instead of failing for want of memory"
_CONTROL_GROUPS = Path("/sys/fs/cgroup")
_GROUP_FILES = (
    ("memory.max", "memory.current", "memory.stat", "inactive_file"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat", "total_inactive_file"),
)
"""Limit, use, and what of the use are files that the system drops when asked for memory: version 2, and version 1."""


def available_bytes() -> int | None:
    """Memory that the steps can have: of the GPU that they run on, else of this machine; None where no GPU tells."""
    gpu = accelerator()
    return device_bytes(gpu) if gpu else free_host_bytes()


def device_bytes(name: str) -> int | None:
    """Memory that TensorFlow gives one of its devices ("/GPU:0"), a card or a slice of one; None where it tells none.

    Asked of the devices that this process has. The functions for everybody's use, `Session.list_devices` and
    `device_lib.list_local_devices`, make new ones, to which all that the first ones took counts as gone.
    """
    from tensorflow.python import pywrap_tfe
    from tensorflow.python.client import pywrap_tf_session
    from tensorflow.python.eager import context

    tf.config.list_logical_devices()  # makes the devices, where nothing has yet
    devices = pywrap_tfe.TFE_ContextListDevices(context.context()._handle)
    try:
        for number in range(pywrap_tfe.TF_DeviceListCount(devices)):
            if pywrap_tfe.TF_DeviceListName(devices, number).endswith(f"/device:{name.removeprefix('/')}"):
                return pywrap_tf_session.TF_DeviceListMemoryBytes(devices, number) or None
    finally:
        pywrap_tfe.TF_DeleteDeviceList(devices)
    return None


def free_host_bytes() -> int:
    """Memory of this machine that a process can still have, within its control group."""
    return min([_meminfo(), *_group_bytes()])


def _group_bytes() -> Iterable[int]:
    """What the control group, where it has a limit, leaves."""
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
        if not hasattr(os, "sysconf"):
            raise LockstepError(
                "memory", found="a system that does not tell how much there is", expected="Linux, macOS or WSL2"
            ) from None
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable"))


def step_bytes(steps: Steps, bucket: int, signature: Batch) -> int:
    """Bytes of a training step: XLA's buffers of its gradients (weights, batch, arena), and what the update holds.

    XLA compiles the gradients once more for this: its cache keeps no buffer assignments.
    """
    from tensorflow.compiler.xla.service import hlo_pb2

    compiler_ir = steps.gradient_steps[bucket].experimental_get_compiler_ir(*signature)  # type: ignore[attr-defined]
    proto = compiler_ir(stage="optimized_hlo_proto_serialized")
    buffers = hlo_pb2.HloProto.FromString(proto).buffer_assignment.buffer_allocations
    return int(sum(buffer.size for buffer in buffers if not buffer.is_thread_local)) + 3 * weight_bytes(steps)


def weight_bytes(steps: Steps) -> int:
    """Bytes of the weights; both moments and the averages take as much each."""
    return int(sum(math.prod(weight.shape) * tf.as_dtype(weight.dtype).size for weight in steps.optimizer.weights))


def largest_step(spec: CacheSpec, sizes: dict[int, int]) -> int:
    """The training bucket whose step takes the most memory, which goes with clips x frames; of equals the longest.

    It need not be the longest of all: that may hold a few outliers, fewer than a batch.
    """
    frames = {number: spec.buckets[number].frames for number in bucket_numbers(spec, "train")}
    return max(frames, key=lambda number: (sizes[number] * frames[number], frames[number]))


def memory(workload: Workload, free: int | None, *, search: bool) -> tuple[Result, int | None]:
    """The largest step against `free` bytes, and the largest `training.batch_size` that can be expected to fit.

    free: None where it is not known; nothing is judged then, and no batch size expected.
    search: look for the largest batch, on a GPU by running its step too. Without it one is looked for only where the
    step as configured does not fit.
    """
    spec, training = workload.subject.spec, workload.subject.config.training
    number = largest_step(spec, workload.subject.sizes)
    needed = step_bytes(workload.steps, number, workload.buckets[number].signature)
    shape = f"{workload.subject.sizes[number]} clips x {spec.buckets[number].frames} frames"
    told = f"{free / 2**20:,.0f} MiB available" if free is not None else "TensorFlow does not tell what there is"
    facts = [Fact(
        name="memory", value={"step_bytes": needed, "available_bytes": free},
        text=f"{needed / 2**20:,.0f} MiB for the largest step ({shape}) by XLA's buffer assignment, {told}",
    )]  # fmt: skip
    if free is None:
        unknown = Fact(name="largest batch", value=None, text="not looked for: the memory is not known")
        return (facts + [unknown] * search, []), None
    limit, micro = _USABLE * free, training.gradient_accumulation_steps
    every = max(spec.buckets[bucket].clips("train") for bucket in bucket_numbers(spec, "train")) // micro * micro
    now = min(training.batch_size, every)  # a larger setting gives the same batches
    kept = 4 * weight_bytes(workload.steps)  # what a step takes before its first clip
    if needed <= limit and not search:
        return (facts, []), int(now * (limit - kept) / (needed - kept))
    most = every if search else now
    size = largest_fitting(lambda n: estimate(workload, n), limit, known={0: kept, now: needed}, most=most, micro=micro)
    if search:
        size, proved = _prove(workload, size, micro)
        facts.append(_found(size, training.batch_size, by_clips=size == most, proved=proved))
    if size >= now:
        return (facts, []), size
    what = f"the largest step, {shape}, needs {needed / 2**30:.1f} GiB, {free / 2**30:.1f} GiB are available"
    return (facts, [_too_large(what, size)]), size


def _too_large(what: str, fitting: int) -> Finding:
    if not fitting:
        return Finding(
            name="out-of-memory",
            section="config",
            what=what,
            cause="it is too large even with one clip a micro-batch, so that no batch setting helps",
            fix="free memory, take a smaller model.size, or keep the longest clips out with shapes.max_mel_frames",
            gain=_RUNS,
        )
    return Finding(
        name="out-of-memory",
        section="config",
        what=what,
        cause="training.batch_size is too large for the memory",
        setting="training.batch_size",
        value=fitting,
        fix="or let --find-batch-size find the largest that fits",
        gain=_RUNS,
    )


def _found(size: int, now: int, *, by_clips: bool, proved: bool) -> Fact:
    limit = "all clips of every bucket" if by_clips else "by memory"
    text = f"{size} ({limit}{', and its largest step ran' if proved else ''}); {now} now" if size else "none fits"
    return Fact(name="largest batch", value={"batch_size": size, "proved": proved}, text=text)


def largest_fitting(
    measure: Callable[[int], int], limit: float, *, known: dict[int, int], most: int, micro: int = 1
) -> int:
    """The largest batch, a multiple of `micro` up to `most`, whose memory `measure(size)` is within `limit` bytes.

    known: memory of some batch, and of 0 clips, which is the least that every batch takes.

    Memory is nearly a straight line over the batch: each compilation draws it through the nearest sizes known, and
    the answer lies between a size that fits and one that does not. 0 when not even one micro-batch fits.
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

    That of 0 clips is used only for want of another: it is too little, for it counts no gradients.
    """
    measured = sorted(place for place in known if place)
    if low and high in known:
        pair = [low, high]
    elif len(measured) > 1:
        pair = measured[-2:] if low else measured[:2]
    else:
        pair = [0, *measured]
    slope = (known[pair[1]] - known[pair[0]]) / (pair[1] - pair[0])
    return int(pair[0] + (limit - known[pair[0]]) / slope) if slope > 0 else 2 * low or high // 2


def estimate(workload: Workload, batch_size: int) -> int:
    """`step_bytes` of the largest step that `training.batch_size` would give, traced beside the locked set."""
    return step_bytes(*_largest_of(workload, batch_size))


def _largest_of(workload: Workload, batch_size: int) -> tuple[Steps, int, Batch]:
    spec, steps = workload.subject.spec, workload.steps
    sizes = batch_sizes(spec, steps.training.model_copy(update={"batch_size": batch_size}))
    number = largest_step(spec, sizes)
    signature = batch_signature(spec, spec.buckets[number], sizes[number])
    alone = Steps(steps.model, steps.optimizer, steps.training, steps.step)
    alone.trace({number: signature})
    return alone, number, signature


def _prove(workload: Workload, size: int, micro: int) -> tuple[int, bool]:
    """(largest batch from `size` down whose largest step runs, whether one ran); only a GPU is tried."""
    if not accelerator():
        return size, False
    while size and not _runs(workload, size):
        size = int(0.9 * size) // micro * micro
    return size, size > 0


def _runs(workload: Workload, batch_size: int) -> bool:
    steps, number, signature = _largest_of(workload, batch_size)
    try:
        steps.train(
            number, blank_batch(signature)
        ).numpy()  # waits: a GPU tells what failed only when asked for the result
    except tf.errors.ResourceExhaustedError:
        return False
    return True
