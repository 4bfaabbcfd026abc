"""A model small enough to compile in seconds, and plans of runs on the shared cache."""

import io
import json

import pytest
from rich.console import Console

from xtts.shared.cache_spec import load_spec
from xtts.shared.config_files import load_config
from xtts.trainer.batches import batch_sizes
from xtts.trainer.plan import RunPlan
from xtts.trainer.run import train
from xtts.trainer.run_folder import RunFolder

MICRO = [
    "model.text_width=16", "model.text_blocks=1", "model.text_heads=2", "model.prenet_layers=1",
    "model.duration_width=16", "model.decoder_width=16", "model.decoder_blocks=1",
    "shapes.buckets=2", "split.validation_fraction=0.1",
    "training.batch_size=3", "training.steps=12", "training.steps_per_call=4", "training.log_every=4",
    "training.checkpoint_every=4", "training.validate_every=6", "training.keep_checkpoints=9",
]  # fmt: skip


@pytest.fixture(scope="session")
def micro_flags():
    return MICRO


@pytest.fixture(scope="session")
def make_plan(tiny_cache):
    """`make_plan(folder, "a.b=c", ..., cache=..., resume=...)`: what `xtts-train` would hand to `train`."""

    def make(folder, *assignments, cache=tiny_cache, resume=None, init_from=None):
        config = load_config("tiny", assignments=[*MICRO, *assignments])
        spec = load_spec(cache)
        return RunPlan(
            config=config,
            cache=cache,
            spec=spec,
            sizes=batch_sizes(spec, config.training),
            folder=RunFolder(folder),
            resume=resume,
            init_from=init_from,
        )

    return make


@pytest.fixture(scope="session")
def train_quietly():
    """Train and give back what the terminal showed."""

    def run(plan):
        screen = io.StringIO()
        train(plan, Console(file=screen, width=400))
        return screen.getvalue()

    return run


@pytest.fixture(scope="session")
def read_steps():
    """The lines of metrics.jsonl of one split, less what depends on the clock."""

    def read(folder, split="train"):
        lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        timing = ("step_seconds", "input_wait_share", "useful_frames_per_second")
        return [{k: v for k, v in line.items() if k not in timing} for line in lines if line["split"] == split]

    return read


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory, make_plan, train_quietly):
    """(folder, screen) of an uninterrupted run of 12 steps: do not change it."""
    folder = tmp_path_factory.mktemp("runs") / "whole"
    return folder, train_quietly(make_plan(folder))
