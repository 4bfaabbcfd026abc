"""The training work that a subject makes: the trainer's own data sets, steps and loop; nothing is written."""

import time

import tensorflow as tf

from xtts.trainer.data.dataset import bucket_order, signatures, training_batches, validation_batches
from xtts.trainer.doctor.subject import Subject
from xtts.trainer.engine.engine import build_engine

_OPENING_STEPS = 8
"""Steps for each bucket, at most, until every bucket has been drawn once."""


def training_data(subject: Subject, number: int) -> tf.data.Dataset:
    """Endless batches of one bucket, as the trainer reads them."""
    config, spec = subject.config, subject.spec
    order = bucket_order(spec, number, seed=config.training.seed, memory_mb=config.data.shuffle_memory_mb)
    return training_batches(subject.cache, spec, order, batch_size=subject.sizes[number], consumed=0)


def data_sets(subject: Subject) -> dict[str, tuple[int, tf.data.Dataset]]:
    """(bucket number, data set) of everything that training would read, by name."""
    spec = subject.spec
    named = {f"training bucket {n:02d}": (n, training_data(subject, n)) for n in subject.training_buckets}
    return named | {
        f"validation bucket {n:02d}": (n, validation_batches(subject.cache, spec, n, batch_size=subject.sizes[n]))
        for n in subject.validation_buckets
    }


class Workload:
    """The engine, built as the trainer builds it, so that the run that follows finds what was compiled here."""

    def __init__(self, subject: Subject) -> None:
        self.subject, self.signatures = subject, signatures(subject.spec, subject.sizes)
        engine = build_engine(subject.cache, subject.spec, subject.config, subject.sizes)
        self.state, self.steps, self.loop, self.validation = engine.state, engine.steps, engine.loop, engine.validation

    def prepare(self) -> float:
        """Compile every step and open every iterator; gives the seconds of compiling alone.

        The first batch of a bucket waits for a whole block to be read, once in a run.
        """
        began = time.perf_counter()
        places = range(len(self.loop.sizes))
        self.steps.compile()
        self.loop.prepare()
        compiled = time.perf_counter() - began
        opened: set[int] = set()
        for _ in range(_OPENING_STEPS * len(places)):
            if len(opened) == len(places):
                break
            opened.update(self.loop.run(1).buckets.tolist())
        return compiled
