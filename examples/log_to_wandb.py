"""Train, and send every step and validation to Weights & Biases: python examples/log_to_wandb.py CACHE [STEPS]."""

import sys
from typing import TYPE_CHECKING

import wandb  # pyright: ignore[reportMissingImports]

from xtts.trainer import train

if TYPE_CHECKING:
    from xtts.trainer.loop.chunk import Chunk
    from xtts.trainer.run.training_run import TrainingRun


def send(_: "TrainingRun", chunk: "Chunk") -> None:
    """A hook: called with the steps of each host call, after they were validated and saved."""
    for row in chunk.rows():  # as in metrics.jsonl
        wandb.log({f"train/{name}": value for name, value in row.items()}, step=int(row["step"]))
    if chunk.validation:
        wandb.log({f"validation/{name}": value for name, value in chunk.validation.items()}, step=chunk.last_step)


def main() -> None:
    """Train for STEPS updates (default 2000)."""
    cache, *steps = sys.argv[1:]
    settings = {"training.steps": int(*steps or [2000])}
    with wandb.init(project="voices", config=settings):
        train(cache, settings=settings, hooks=[send])


if __name__ == "__main__":
    main()
