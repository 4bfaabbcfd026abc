"""A model small enough to compile in seconds, and plans of runs on the shared cache."""

import fcntl
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from forked_program import Forked
from rich.console import Console

from xtts.precompute.build.build_cache import build_cache
from xtts.precompute.workers.progress import NullProgress
from xtts.shared.cache.cache_spec import load_spec
from xtts.shared.cache.records import Record, frame, parse_example, unframe
from xtts.shared.config_files import load_config
from xtts.shared.system.folder_lock import ReadLock
from xtts.trainer.reporting.run_folder import RunFolder
from xtts.trainer.run.run_plan import RunPlan

XTTS_TRAIN = Path(sys.executable).with_name("xtts-train")
MICRO = [
    "model.text_width=16", "model.text_blocks=1", "model.text_heads=2", "model.prenet_layers=1",
    "model.duration_width=16", "model.decoder_width=16", "model.decoder_blocks=1",
    "model.decoder_levels=[{rate: 2, width: 16, blocks: 1, heads: 1, expansion: 1}]",
    "shapes.buckets=2", "split.validation_fraction=0.1",
    "training.batch_size=3", "training.steps=12", "training.steps_per_call=4", "training.log_every=4",
    "training.checkpoint_every=4", "training.validate_every=6", "training.keep_checkpoints=9",
    "training.samples_every=null",
]  # fmt: skip


@pytest.fixture(scope="session")
def micro():
    """Assignments of the micro model and of settings that fit the shared cache."""
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
            folder=RunFolder(folder),
            resume=resume,
            init_from=init_from,
            lock=ReadLock(cache),
        )

    return make


@pytest.fixture(scope="session")
def one_shape_cache(tmp_path_factory, tiny_corpus):
    """The cache of `tiny_corpus` with one bucket, a tenth held out: do not change it."""
    cache = tmp_path_factory.mktemp("one-shape") / "features"
    settings = {"shapes.buckets": 1, "split.validation_fraction": 0.1}
    build_cache(tiny_corpus, cache, load_config("tiny", flags=settings), workers=0, progress=NullProgress())
    return cache


@pytest.fixture(scope="session")
def compiled_here():
    """Runs in this process take over the steps of those before them, every variable as it was at first."""
    from shared_steps import shared_steps

    with shared_steps():
        yield


@pytest.fixture(scope="session")
def compiled_trainer(tmp_path_factory, make_plan, compiled_here):
    """(trainer of the micro model on the shared cache, its state before and after its steps were compiled)."""
    from xtts.trainer.engine.compiler import Compiler
    from xtts.trainer.run.trainer import Trainer

    with Compiler() as compiler:
        built = Trainer(
            make_plan(tmp_path_factory.mktemp("loop"), "training.steps=1000"), Console(quiet=True), compiler
        )
        before = built.state.arrays()
        built.compile()
    return built, before, built.state.arrays()


@pytest.fixture(scope="session")
def trainer(compiled_trainer):
    """That trainer: its steps are compiled; tests move it on."""
    return compiled_trainer[0]


@pytest.fixture(scope="session")
def call(compiled_here):
    """`call(main, *arguments)`: one of our commands in this process: (exit code, stdout, stderr)."""

    def run(main, *arguments):
        done = CliRunner().invoke(main, [*map(str, arguments)])
        if not (done.exception is None or isinstance(done.exception, SystemExit)):
            raise done.exception
        return done.exit_code, done.stdout, done.stderr

    return run


def train_arguments(folder, assignments, cache, more):
    settings = (part for value in (*MICRO, *assignments) for part in ("--set", value))
    return [*map(str, ("--cache", cache, "--out", folder, *more, *settings))]


@pytest.fixture(scope="session")
def start_train(tiny_cache):
    """`start_train(folder, "a.b=c", ..., cache=..., more=[...])`: xtts-train in a process of its own.

    Equal steps are compiled once for all of these processes: XLA's cache knows a step by its place in the program.
    """

    def start(folder, *assignments, cache=tiny_cache, more=(), **process):
        command = [str(XTTS_TRAIN), *train_arguments(folder, assignments, cache, more)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen(command, **pipes, **process)

    return start


@pytest.fixture(scope="session")
def fork_train(tiny_cache):
    """The same as `start_train`, forked from a process that has imported TensorFlow."""

    def start(folder, *assignments, cache=tiny_cache, more=(), **limits):
        line = [XTTS_TRAIN, *train_arguments(folder, assignments, cache, more)]
        return Forked(line, folder.with_suffix(".screen"), **limits)

    return start


@pytest.fixture(scope="session")
def run_train(call, tiny_cache):
    """The same command in this process, with the steps that it has compiled: (exit code, stdout, stderr)."""
    from xtts.trainer.cli import main

    def run(folder, *assignments, cache=tiny_cache, more=()):
        return call(main, *train_arguments(folder, assignments, cache, more))

    return run


@pytest.fixture(scope="session")
def read_steps():
    """The lines of metrics.jsonl of one split, less what depends on the clock."""

    def read(folder, split="train"):
        lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        timing = ("step_seconds", "input_wait_share", "outside_share", "useful_frames_per_second")
        return [{k: v for k, v in line.items() if k not in timing} for line in lines if line["split"] == split]

    return read


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory, run_train, worker_id):
    """(folder, screen) of an uninterrupted run of 12 steps, one for all processes of the tests: do not change it."""
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "finished-run" / "whole"
    folder.parent.mkdir(exist_ok=True)
    told = folder.with_name("screen.txt")
    with open(folder.with_name("lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not told.exists():
            code, screen, err = run_train(folder)
            assert code == 0, err
            told.write_text(screen)
    return folder, told.read_text()


@pytest.fixture(scope="session")
def poison(tiny_cache):
    """`poison(path, split)`: a copy of the cache with one NaN frame in one clip, whose id it returns; sizes stay."""

    def make(path, split):
        shutil.copytree(tiny_cache, path)
        spec = load_spec(path)
        shard = next(shard for bucket in spec.buckets for shard in bucket.shards(split))
        payloads = list(unframe(memoryview((path / shard.file).read_bytes()), limit_bytes=1 << 24))
        record = parse_example(payloads[0], mel_dtype=spec.mel_dtype, mel_channels=spec.mel_channels)
        mel = record.mel.copy()
        mel[3] = np.nan
        poisoned = Record(**{**vars(record), "mel": mel})
        data = frame(poisoned.to_example()) + b"".join(frame(bytes(p)) for p in payloads[1:])
        (path / shard.file).write_bytes(data)
        return record.clip_id

    return make
