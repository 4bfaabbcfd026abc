"""Memory of a locked step by XLA's buffer assignment, known after compiling and before anything runs."""

import math
import os
from collections.abc import Iterable
from pathlib import Path

import tensorflow as tf

from xtts.trainer.data.batch import AnyBatch
from xtts.trainer.doctor.environment import driver
from xtts.trainer.doctor.results import Fact, Findings, Problem
from xtts.trainer.loop.replicas import TrainingLoops
from xtts.trainer.loop.train_step import StepFunctions
from xtts.trainer.system.device import step_device

_USABLE = 0.9
"""Share of the free memory that a step may take; the rest is for the input pipeline, checkpoints, fragmentation."""
CONTROL_GROUPS = Path("/sys/fs/cgroup")
"""Folder in which the kernel shows the memory limits of control groups."""


def available_bytes() -> int | None:
    """Memory available to the steps, on the GPU or else on this machine; None if the driver does not report it."""
    if step_device() == "CPU:0":
        return free_host_bytes()
    card = driver()
    return int(card["memory.total"]) << 20 if card and card["memory.total"].isdigit() else None


def free_host_bytes() -> int:
    """Memory of this machine that a process can still allocate, within its cgroup."""
    return min([_meminfo(), *_group_bytes()])


def _group_bytes() -> Iterable[int]:
    """Bytes that the limit of the control group (version 2) leaves; none without a limit."""
    limit, usage, stat = (CONTROL_GROUPS / f"memory.{name}" for name in ("max", "current", "stat"))
    if limit.is_file() and (text := limit.read_text(encoding="ascii").strip()).isdigit():
        counts = dict(line.split() for line in stat.read_text(encoding="ascii").splitlines())
        used = int(usage.read_text(encoding="ascii")) - int(counts.get("inactive_file", 0))  # reclaimable
        yield max(int(text) - used, 0)


def _meminfo() -> int:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable"))


def step_bytes(step_functions: StepFunctions, bucket: int, signature: AnyBatch) -> int:
    """Bytes of a training step: XLA's buffers for the gradients (weights, batch, arena), plus the update's arrays.

    XLA compiles the gradients again for this: its cache keeps no buffer assignments.
    """
    from tensorflow.compiler.xla.service import hlo_pb2

    compiler_ir = step_functions.gradient_steps[bucket].experimental_get_compiler_ir(*signature)  # type: ignore[attr-defined]
    proto = compiler_ir(stage="optimized_hlo_proto_serialized")
    buffers = hlo_pb2.HloProto.FromString(proto).buffer_assignment.buffer_allocations
    return int(sum(buffer.size for buffer in buffers if not buffer.is_thread_local)) + 3 * weight_bytes(step_functions)


def weight_bytes(step_functions: StepFunctions) -> int:
    """Bytes of the weights; each of the two moments and the averages takes as much."""
    weights = step_functions.optimizer.weights
    return int(sum(math.prod(weight.shape) * tf.as_dtype(weight.dtype).size for weight in weights))


def memory(loops: TrainingLoops, free: int | None) -> Findings:
    """Check the step of the most clips x frames against `free` bytes; None if unknown, then there is no verdict.

    It need not be that of the longest bucket, which may hold only a few outliers, fewer than a batch.
    """
    bucket = max(loops.buckets, key=lambda bucket: bucket.extent)
    needed = step_bytes(loops.step_functions, bucket.number, bucket.signature)
    shape = f"{bucket.batch_size} clips x {bucket.stored.frames} frames"
    available = f"{free / 2**20:,.0f} MiB available" if free is not None else "the driver does not report the memory"
    yield Fact(
        name="memory", value={"step_bytes": needed, "available_bytes": free},
        text=f"{needed / 2**20:,.0f} MiB for the largest step ({shape}) by XLA's buffer assignment, {available}",
    )
    if free is None or needed <= _USABLE * free:
        return
    what = f"the largest step, {shape}, needs {needed / 2**30:.1f} GiB, but only {free / 2**30:.1f} GiB are available"
    # Assumes that memory is linear in the clips beyond weights, gradients, moments and averages: any other fixed cost
    # makes the batch that fits smaller.
    kept, training = 5 * weight_bytes(loops.step_functions), loops.step_functions.training
    share = max(_USABLE * free - kept, 0) / (needed - kept)
    micro = training.gradient_accumulation_steps
    fitting = int(share * training.batch_size) // micro * micro
    cause, remedy = "training.batch_size is too large for the memory", f"set training.batch_size to {fitting}"
    remedy += ", then run xtts-doctor again: the memory is estimated from that of the larger batch"
    if not fitting:
        cause = "it is too large even with one clip per micro-batch, so no batch setting helps"
        remedy = "free memory, use a smaller model.size, or exclude the longest clips with shapes.max_mel_frames"
    gain = "the step runs instead of running out of memory"
    yield Problem(name="out-of-memory", what=what, cause=cause, remedy=remedy, gain=gain)
