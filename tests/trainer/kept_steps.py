"""Compiled steps of ended runs, which later runs of the same model and cache take: their tests compile nothing."""

from xtts.trainer.data.batch import is_locked
from xtts.trainer.data.batch_sizes import typical_update
from xtts.trainer.data.training_bucket import training_buckets
from xtts.trainer.loop import replicas as replicas_module
from xtts.trainer.loop.train_state import TrainState
from xtts.trainer.run.train_steps import OF_THE_HOST
from xtts.trainer.run.training_run import TrainingRun

SCHEDULE = OF_THE_HOST - {"runtime"} | {"seed"}
"""Settings of training that no compiled step contains."""
trace_replicas = replicas_module.trace_replicas


class KeptSteps:
    """The replicas of single devices, by what their steps depend on; taken by one run at a time."""

    def __init__(self):
        self._replicas = {}

    @staticmethod
    def _key(buckets, config):
        training = config.training.model_dump(exclude=SCHEDULE)
        return repr((config.model, config.vocoder, training, buckets[0].spec.model_dump()))

    def take(self, buckets, config):
        """Remove and return the steps of such a run; None without any."""
        return self._replicas.pop(self._key(buckets, config), None)

    def keep(self, replicas, buckets, config):
        """Keep the steps of a run that has ended."""
        if len(replicas) == 1 and all(is_locked(bucket.signature) for bucket in buckets):
            self._replicas[self._key(buckets, config)] = replicas

    def take_or_trace(self, buckets, objective_of, config, group=replicas_module.ALONE, submit=lambda name, call: None):
        """As `trace_replicas`: kept steps with every variable as at the beginning of a new run."""
        kept = self.take(buckets, config) if group.size == 1 else None
        if kept is None:
            return trace_replicas(buckets, objective_of, config, group, submit)
        state, steps = kept[0].state, kept[0].step_functions
        spec = buckets[0].spec
        state.restore(TrainState(objective_of(config, spec, buckets[0].cache), config.training, spec).arrays())
        sizes = {bucket.number: bucket.batch_size for bucket in buckets}
        steps.typical.assign(steps.objective.counts_of(*typical_update(buckets[0].spec, sizes)))
        steps.seed.assign(config.training.seed)
        steps.training = config.training
        for name, call in steps.compile_calls.items():
            submit(name, call)
        return kept

    def use(self, patch):
        """Have runs take kept steps, and leave theirs when they end."""
        leave = TrainingRun.__exit__

        def leave_steps(run, *exception):
            leave(run, *exception)
            plan = run.plan
            buckets = training_buckets(plan.cache, plan.spec, plan.config)
            self.keep(run.loops.replicas, buckets, plan.config)

        patch.setattr(replicas_module, "trace_replicas", self.take_or_trace)
        patch.setattr(TrainingRun, "__exit__", leave_steps)


KEPT_STEPS = KeptSteps()
