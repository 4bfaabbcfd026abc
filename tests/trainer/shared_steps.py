"""Runs of one process that take over each other's compiled steps: tracing and compiling are most of a small run."""

from contextlib import contextmanager
from types import MappingProxyType
from unittest.mock import patch

from tensorflow.python.ops import gen_dataset_ops

from xtts.trainer.engine import engine
from xtts.trainer.engine.dynamic_baseline import loop_kinds
from xtts.trainer.engine.train_state import TrainState
from xtts.trainer.engine.train_step import UPDATE, Steps
from xtts.trainer.engine.training_loop import TrainingLoop
from xtts.trainer.engine.validation_loop import ValidationLoop

SCHEDULE = {
    "steps", "epochs", "patience", "learning_rate", "warmup_steps", "decay_fraction", "final_learning_rate_share",
    "max_bad_steps", "steps_per_call", "log_every", "validate_every", "samples_every", "sample_sentences",
    "samples_heard", "checkpoint_every", "keep_checkpoints",
}  # fmt: skip
"""Settings of training that are in no compiled step; runs that differ in any other one share nothing."""


IN_THE_LOOP = {
    "seed", "steps", "learning_rate", "warmup_steps", "decay_fraction", "final_learning_rate_share",
}  # fmt: skip
"""Settings of training that are constants of the traced loop, beside those of the steps."""


def read_again(old, new):
    """The iterator `old`, which a traced loop holds, reads from now on what `new` would read, from its beginning."""
    gen_dataset_ops.make_iterator(new._dataset._variant_tensor, old._iterator_resource)
    old._dataset = new._dataset


class SharedSteps(Steps):
    """Steps whose next trace is skipped when a run took them over."""

    taken_over = False

    def trace(self, training, validation=MappingProxyType({}), *, traced=lambda name, call: None):
        if not self.taken_over:
            super().trace(training, validation, traced=traced)
            return
        self.taken_over = False
        for name, call in self.compile_calls.items():
            if name != UPDATE:
                traced(name, call)


class Kept:
    """What the runs of this process made, by what decides the compiled steps."""

    def __init__(self):
        self._runs = {}
        self._loops = {}

    def state(self, config, spec):
        """The state of the first run of such steps, every variable as it was before; a new one for a first run."""
        training = config.training.model_dump(exclude=SCHEDULE)
        key = repr((config.model.model_dump(), training, spec.model_dump(), config.data.mel_on))
        if not spec.fixed_length:  # shapes are traced as they come, and counted: nothing to share
            return TrainState(config, spec)
        if key not in self._runs:
            state = TrainState(config, spec)
            steps = SharedSteps(state.model, state.optimizer, config.training, state.step)
            self._runs[key] = state, state.arrays(), steps
            return state
        state, before, steps = self._runs[key]
        state.restore(before)
        steps.training, steps.taken_over = config.training, True
        steps.seed.assign(config.training.seed)
        steps.rate.assign(0.0)
        return state

    def steps(self, model, optimizer, training, step):
        """The steps of what `state` gave."""
        kept = [steps for state, _, steps in self._runs.values() if state.model is model]
        return kept[0] if kept else Steps(model, optimizer, training, step)

    def loop_kinds(self, buckets):
        """Loops that are traced once; what they read is opened again for every run."""
        return (self._training_loop, self._validation_loop) if buckets[0].signature.is_locked else loop_kinds(buckets)

    def _training_loop(self, buckets, data, steps, position):
        new = TrainingLoop(buckets, data, steps, position)
        training = steps.training.model_dump(include=IN_THE_LOOP)
        loop = self._loops.setdefault(repr((buckets, data, training, id(steps))), new)
        if loop is not new:
            for old, iterator in zip(loop._iterators, new._iterators, strict=True):
                read_again(old, iterator)
        loop.host_calls = 0
        return loop

    def _validation_loop(self, buckets, steps, stop):
        new = ValidationLoop(buckets, steps, stop)
        loop = self._loops.setdefault(repr((buckets, id(steps), id(stop))), new)
        if loop is not new:
            for (_, old, _), (_, iterator, _) in zip(loop._parts, new._parts, strict=True):
                read_again(old, iterator)
        return loop


@contextmanager
def shared_steps():
    """Inside this, the trainer and the doctor take over the steps that they compiled in this process."""
    kept = Kept()
    with (
        patch.object(engine, "TrainState", kept.state),
        patch.object(engine, "Steps", kept.steps),
        patch.object(engine, "loop_kinds", kept.loop_kinds),
    ):
        yield
