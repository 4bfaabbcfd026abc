"""The loop of steps that are programs: it reads ahead, keeps the order, and ends where a shard cannot be read."""

import threading
from types import SimpleNamespace

import numpy as np
import pytest

from xtts.shared.config import TrainingConfig
from xtts.shared.errors import LockstepError
from xtts.trainer.data.stored_batches import Input
from xtts.trainer.loop.failures import RunEnded
from xtts.trainer.loop.metrics import Metrics
from xtts.trainer.loop.program_loop import Place, ProgramLoop

METRICS = Metrics(weights={"loss": 1.0}, held_out=(), compared=())
START = Place(0, 0, np.zeros(1, np.int64))


class Device:
    """A runtime whose steps end when `step_may_end` says so; each returns its batch."""

    def __init__(self, step_may_end):
        self.programs = {"training step of bucket 00": SimpleNamespace(inputs=[Input("mel_length", "int32", (2,))])}
        self.step_may_end, self.trained = step_may_end, []

    def call(self, name, *inputs):
        if name in self.programs:
            self.trained.append(inputs[0].tolist())
            return inputs[0], None
        return (self,)

    def __array__(self, dtype=None, copy=None):
        self.step_may_end()
        return np.zeros(len(METRICS.step))


class Clips:
    """An order of two clips a batch, and their reader, to whom a clip beyond `last` is unreadable."""

    buckets = (0,)

    def __init__(self, last=99):
        self.last, self.reads = last, threading.Semaphore(0)

    def draw(self, place):
        return 0, Place(place.batches + 1, 0, place.consumed + 2)

    def batch(self, index, offset):
        return index, [(0, offset), (0, offset + 1)]

    def read(self, bucket, split, clips, fields):
        records = [record for _, record in clips]
        if records[-1] > self.last:
            raise LockstepError("shard 0", found="cut off")
        self.reads.release()
        return [np.array(records, np.int32)]


def loop_of(clips, device, steps=8):
    training = TrainingConfig(steps=steps, warmup_fraction=0.0, decay_fraction=0.0)
    return ProgramLoop(device, clips, clips, START, training, METRICS)


def test_the_batches_after_a_step_are_read_while_it_runs():
    clips = Clips()

    def after_four_more_reads():
        assert all(clips.reads.acquire(timeout=20) for _ in range(4)), "read only after the step"
        clips.reads.release(3)

    device = Device(after_four_more_reads)
    loop = loop_of(clips, device)
    result = loop.run(2)
    assert device.trained == [[0, 1], [2, 3]]
    assert result.offsets.tolist() == [0, 2]
    device.step_may_end = lambda: None
    loop.run(6)
    assert device.trained == [[2 * i, 2 * i + 1] for i in range(8)], "none lost between two calls, none beyond the last"
    assert loop.place.batches == 8


def test_a_run_ends_at_the_step_whose_batch_cannot_be_read():
    device = Device(lambda: None)
    loop = loop_of(Clips(last=5), device)
    with pytest.raises(RunEnded, match="shard 0: cut off"):
        loop.run(8)
    assert loop.place.batches == len(device.trained) == 3
