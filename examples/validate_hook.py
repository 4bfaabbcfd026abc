"""Validate in a hook of your own, and stop when it no longer improves: python examples/validate_hook.py CACHE [STEPS].

It does what `Validate` of `trainer/run/hooks.py` does, by the public names of the run.
"""

import sys
from typing import TYPE_CHECKING

from xtts.trainer import train

if TYPE_CHECKING:
    from xtts.trainer.loop.chunk import Chunk
    from xtts.trainer.run.training_run import TrainingRun


class StopWhenWorse:
    """Computes the held-out losses with the averaged weights, and ends the run at the first that is no better."""

    def __init__(self, every: int) -> None:
        self.every, self.losses = every, list[float]()

    def __call__(self, run: "TrainingRun", _: "Chunk") -> None:
        """Validate after every `every` steps; `Chunk` holds the steps of the last host call."""
        if not run.validation.batches or not run.is_due(self.every):
            return
        with run.averaged_weights():
            result = run.graph.run(run.validation.run)
        if result is None:  # a signal came first
            return
        losses, _ = result
        self.losses.append(run.metrics.total(losses))
        run.reporter.say(f"my validation at step {run.step}: {self.losses[-1]:.4f}")
        if self.losses[-1] > min(self.losses):
            run.request_stop(f"no better than {min(self.losses):.4f}")


def main() -> None:
    """Train for at most STEPS updates (default 2000)."""
    cache, *steps = sys.argv[1:]
    every = 100  # a host call ends where a validation or a checkpoint is due, and a hook is called there
    settings = {"training.steps": int(*steps or [2000]), "training.steps_per_call": every}
    train(cache, settings=settings, hooks=[StopWhenWorse(every)])


if __name__ == "__main__":
    main()
