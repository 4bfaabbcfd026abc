"""The trainer's data sets, steps and loop for a subject; nothing is written."""

import time
from collections.abc import Iterable

import tensorflow as tf

from xtts.trainer.data.dataset import training_batches, validation_batches
from xtts.trainer.data.training_bucket import TrainingBucket, training_buckets
from xtts.trainer.doctor.subject import Subject
from xtts.trainer.engine.engine import TracedSteps, build_engine

_OPENING_STEPS = 8
"""Most steps per bucket until every bucket has been drawn once."""


def data_sets(buckets: Iterable[TrainingBucket]) -> dict[str, tuple[TrainingBucket, tf.data.Dataset]]:
    """(bucket, data set) of all that training would read, by name."""
    buckets = list(buckets)
    named = {f"training bucket {b.number:02d}": (b, training_batches(b, 0)) for b in buckets if b.trains}
    return named | {f"validation bucket {b.number:02d}": (b, validation_batches(b)) for b in buckets if b.validates}


class Workload:
    """The engine, built as in the trainer, so that a run finds the steps compiled here.

    traced: what `build_engine` takes as `steps`.
    """

    def __init__(self, subject: Subject, traced: TracedSteps | None = None) -> None:
        buckets = training_buckets(subject.cache, subject.spec, subject.config)
        self.subject, self.buckets = subject, {bucket.number: bucket for bucket in buckets}
        engine = build_engine(buckets, subject.config, steps=traced)
        self.state, self.steps, self.loop, self.validation = engine.state, engine.steps, engine.loop, engine.validation

    def prepare(self) -> float:
        """Compile every step and open every iterator; returns the seconds of compiling alone.

        A bucket's first batch waits for a whole block to be read, once per run.
        """
        began = time.perf_counter()
        places = range(len(self.loop.buckets))
        self.steps.compile()
        self.loop.prepare()
        compiled = time.perf_counter() - began
        opened: set[int] = set()
        for _ in range(_OPENING_STEPS * len(places)):
            if len(opened) == len(places):
                break
            opened.update(self.loop.run(1).buckets.tolist())
        return compiled
