"""The training work that a subject makes: the trainer's own data sets, steps and loop; nothing is written."""

import time

import tensorflow as tf

from xtts.trainer.data.dataset import bucket_order, signatures, training_batches, validation_batches
from xtts.trainer.doctor.subject import Subject
from xtts.trainer.engine.train_state import TrainState
from xtts.trainer.engine.train_step import Steps
from xtts.trainer.engine.training_loop import TrainingLoop

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
    """The steps and the loop.

    Built in the order in which the trainer builds them: XLA's cache knows a step by the number of its trace, so that
    the run that follows finds what was compiled here.
    """

    def __init__(self, subject: Subject) -> None:
        spec, config = subject.spec, subject.config
        self.subject, self.signatures = subject, signatures(subject.spec, subject.sizes)
        self.state = TrainState(config, spec)
        self.steps = Steps(self.state.model, self.state.optimizer, config.training, self.state.step)
        self.steps.trace(self.signatures, training=subject.training_buckets, validation=subject.validation_buckets)
        self.loop = TrainingLoop(subject.cache, spec, config, subject.sizes, self.steps, self.state.position)

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
