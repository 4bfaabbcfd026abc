"""A model small enough to compile in seconds, plans of its runs, and one finished run."""

import hashlib
import json
import shutil
import subprocess
import sys
from typing import NamedTuple

import numpy as np
import pytest
import soundfile
from cache_files import build_cache
from click.testing import CliRunner
from made_once import made_once
from rich.console import Console

from xtts.shared.cache.cache_spec import load_spec
from xtts.shared.cache.records import Record, frame, parse_example, unframe
from xtts.shared.config_files import load_config
from xtts.shared.system.folder_lock import ReadLock
from xtts.shared.system.machine import usable_cores
from xtts.trainer import cli, synth_cli
from xtts.trainer.export.exported_voice import exported_voice
from xtts.trainer.loop.train_state import TrainState
from xtts.trainer.run import finish as finish_module
from xtts.trainer.run.run_plan import RunPlan
from xtts.trainer.speech.synthesis_options import SynthesisOptions
from xtts.trainer.speech.synthesizer import load_synthesizer
from xtts.trainer.stored.checkpoint import (
    META_FILE,
    STATE_FILE,
    find_checkpoint,
    identity_of,
    load_arrays,
    save_checkpoint,
)
from xtts.trainer.stored.run_folder import RunFolder
from xtts.trainer.stored.stored_model import open_model
from xtts.trainer.system.tensorflow_import import tensorflow_import

with tensorflow_import():  # as the commands do
    import tensorflow as tf

    # Steps of tests wait in Python for what other ops do: on one core TensorFlow would have one thread for both.
    tf.config.threading.set_inter_op_parallelism_threads(max(2, usable_cores()))
    from kept_steps import KEPT_STEPS

    from xtts.trainer.models.acoustic import alignment
from speaking_models import several, several_graph, synthesizer, untrained  # noqa: F401

MICRO = [
    "model.text_width=16", "model.text_blocks=1", "model.text_heads=2", "model.prenet_layers=1",
    "model.duration_width=16", "model.decoder_width=16", "model.decoder_blocks=1",
    "model.decoder_levels=[{rate: 2, width: 16, blocks: 1, heads: 1, expansion: 1}]",
    "shapes.buckets=2", "split.validation_fraction=0.1",
    "training.batch_size=3", "training.steps=12", "training.steps_per_call=4", "training.log_every=4",
    "training.checkpoint_every=4", "training.validate_every=6", "training.keep_checkpoints=9",
    "training.samples_every=null", "training.optimizer=adamw",  # compiled in half of the time
]


@pytest.fixture(scope="session")
def micro():
    """Assignments of the micro model and of settings that fit the shared cache of two shapes."""
    return MICRO


def assignments_for(cache, more):
    """The micro model on a cache, with changes."""
    shapes = load_spec(cache).features["shapes"]
    fitting = [f"shapes.{name}={json.dumps(shapes[name])}" for name in ("buckets", "pad_to_fixed_length")]
    return [*MICRO, *fitting, *more]


@pytest.fixture(scope="session")
def make_plan(tiny_cache):
    """`make_plan(folder, "a.b=c", ..., cache=..., resume=...)`: what `xtts-train` would pass to `train`."""

    def make(folder, *assignments, cache=tiny_cache, resume=None, init_from=None):
        return RunPlan(
            config=load_config("tiny", assignments=assignments_for(cache, assignments)), cache=cache, named_cache=cache,
            spec=load_spec(cache), folder=RunFolder(folder), resume=resume, init_from=init_from, lock=ReadLock(cache),
        )

    return make


@pytest.fixture(scope="session")
def one_shape_cache(tmp_path_factory, tiny_corpus):
    """The cache of `tiny_corpus` with one shape, a tenth held out, and voices: do not change it."""
    cache = tmp_path_factory.mktemp("one-shape") / "features"
    settings = {"shapes.buckets": 1, "split.validation_fraction": 0.1, "model.voice_from": "recording"}
    build_cache(tiny_corpus, cache, load_config("tiny", flags=settings))
    return cache


@pytest.fixture(scope="session")
def crop_cache(tmp_path_factory, tiny_corpus):
    """The cache of `tiny_corpus` in crops of 32 frames, a tenth held out: do not change it."""
    cache = tmp_path_factory.mktemp("crops") / "crops"
    settings = ["audio.crop_frames=32", "audio.crop_pitch=0", "shapes.buckets=1", "split.validation_fraction=0.1"]
    build_cache(tiny_corpus, cache, load_config("vocoder", assignments=settings))
    return cache


@pytest.fixture(scope="session", autouse=True)
def short_blocks_of_the_search():
    """Trace and compile a fourteenth of the sums of a block; test_alignment.py also searches in whole ones."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alignment, "BLOCK_FRAMES", 4)
        yield


@pytest.fixture(scope="session", autouse=True)
def runs_keep_their_steps():
    """Let a run leave its compiled steps to the next one of the same model and cache."""
    with pytest.MonkeyPatch.context() as patch:
        KEPT_STEPS.use(patch)
        yield


@pytest.fixture(scope="session")
def compiled_run(tmp_path_factory, make_plan):
    """(run of the micro model on the shared cache, its state before and after its steps were compiled)."""
    from xtts.trainer.loop.compiler import Compiler
    from xtts.trainer.run.training_run import TrainingRun

    plan = make_plan(tmp_path_factory.mktemp("loop"), "training.steps=1000")
    with Compiler() as compiler:
        run = TrainingRun(plan, Console(quiet=True), compiler)
        before = run.state.arrays()
        run.compile()
    return run, before, run.state.arrays()


@pytest.fixture(scope="session")
def training_run(compiled_run):
    """That run: its steps are compiled; tests move it on."""
    return compiled_run[0]


def leave_facts(path, console, data=None):
    """Leave of a voice what says which checkpoint it was exported from."""
    stored = open_model(path)
    stored.run.voice_folder.mkdir(exist_ok=True)
    (stored.run.voice_folder / "facts.json").write_text(json.dumps({"checkpoint": stored.weights_digest()}))


@pytest.fixture(scope="session", autouse=True)
def no_voice_at_the_end():
    """Let runs end without their voice, whose export takes seconds; test_finish.py exports one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(finish_module, "finish_run", leave_facts)
        yield


class Done(NamedTuple):
    """A command that has ended."""

    code: int
    out: str
    err: str

    def succeeded(self):
        """What it said, if it ended well."""
        assert self.code == 0, self.err
        return self.out

    def refused(self):
        """What it said, if it refused what it was asked to do."""
        assert self.code == 2, self.err
        return self.err


@pytest.fixture(scope="session")
def call():
    """`call(main, *arguments)`: one of our commands in this process: (exit code, stdout, stderr)."""

    def run(main, *arguments):
        done = CliRunner().invoke(main, [*map(str, arguments)])
        if not (done.exception is None or isinstance(done.exception, SystemExit)):
            raise done.exception
        return Done(done.exit_code, done.stdout, done.stderr)

    return run


RUNS = (
    "training.batch_size=4", "training.gradient_accumulation_steps=2", "training.warmup_fraction=0.16",
    "training.decay_fraction=0.3",
)
"""Of every run; two devices can share such batches."""
SAMPLING = ("training.samples_every=8", "training.sample_sentences=4", "training.samples_heard=1")


def train_arguments(folder, assignments, cache, more):
    wanted = assignments_for(cache, [*RUNS, *assignments])
    settings = (part for value in wanted for part in ("--set", value))
    return [*map(str, ("--cache", cache, "--out", folder, *more, *settings))]


@pytest.fixture(scope="session")
def start_train(one_shape_cache):
    """`start_train(folder, "a.b=c", ..., cache=..., more=[...])`: xtts-train as a process of its own."""

    def start(folder, *assignments, cache=one_shape_cache, more=(), env=None):
        line = [sys.executable, "-c", "from xtts.trainer.cli import main; main()"]
        line += train_arguments(folder, assignments, cache, more)
        return subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=env)

    return start


@pytest.fixture(scope="session")
def plan_of_run(make_plan, one_shape_cache):
    """`plan_of_run(folder, "a.b=c", ...)`: the plan of a run of `run_train`."""
    return lambda folder, *more: make_plan(folder, *RUNS, *more, cache=one_shape_cache)


@pytest.fixture(scope="session")
def run_train(call, one_shape_cache):
    """The same command in this process, with steps that earlier runs compiled: (exit code, stdout, stderr)."""

    def run(folder, *assignments, cache=one_shape_cache, more=()):
        return call(cli.main, *train_arguments(folder, assignments, cache, more))

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
def finished_run(run_train):
    """(folder, screen) of an uninterrupted run of 12 steps, with samples, on one shape: do not change it."""
    with made_once("finished-run") as (place, empty):
        if empty:
            screen = run_train(place / "whole", *SAMPLING).succeeded()
            (place / "screen.txt").write_text(screen)
    return place / "whole", (place / "screen.txt").read_text()


@pytest.fixture(scope="session")
def poison(tiny_cache):
    """`poison(path, split)`: a copy of a cache with one NaN frame in one clip, whose id it returns; sizes stay."""

    def make(path, split, cache=tiny_cache):
        shutil.copytree(cache, path)
        spec = load_spec(path)
        shard = next(shard for bucket in spec.buckets for shard in bucket.shards(split))
        payloads = list(unframe(memoryview((path / shard.file).read_bytes())))
        record = parse_example(payloads[0], mel_dtype=spec.mel_dtype, mel_channels=spec.mel_channels)
        mel = record.mel.copy()
        mel[3] = np.nan
        poisoned = Record(**{**vars(record), "mel": mel})
        data = frame(poisoned.to_example()) + b"".join(frame(bytes(p)) for p in payloads[1:])
        (path / shard.file).write_bytes(data)
        return record.clip_id

    return make


@pytest.fixture(scope="session")
def moved_run(finished_run):
    """A copy of the finished run whose averages say something: most layers that begin as zeros still are.

    Do not change it.
    """
    with made_once("moved-run") as (place, empty):
        run = place / "moved"
        if empty:
            shutil.copytree(finished_run[0], run)
            checkpoint, random = find_checkpoint(run), np.random.default_rng(0)
            arrays = load_arrays(checkpoint)
            for name, value in arrays.items():
                if name.startswith("averages/") and value.dtype == np.float32:
                    arrays[name] = value + random.normal(0.0, 0.1, value.shape).astype(np.float32)
            np.savez(checkpoint / STATE_FILE, **arrays)
            meta = json.loads((checkpoint / META_FILE).read_text())
            meta["sha256"] = hashlib.sha256((checkpoint / STATE_FILE).read_bytes()).hexdigest()
            (checkpoint / META_FILE).write_text(json.dumps(meta))
    return run


def exported(kind, *options):
    """A session fixture: the folder `small-voice` that the command exports of `moved_run`, and its output.

    Tests do not change it.
    """

    @pytest.fixture(scope="session")
    def folder(call, moved_run):
        with made_once(f"exported-{kind}") as (place, empty):
            if empty:
                line = ("export", "--ckpt", moved_run, place / "small-voice", "--format", kind, *options)
                said = call(synth_cli.main, *line).succeeded()
                (place / "screen.txt").write_text(said)
        return place / "small-voice"

    return folder


safetensors_folder = exported("safetensors")
onnx_folder = exported("onnx", "--solver", "euler")


@pytest.fixture(scope="session")
def imitator(make_plan, one_shape_cache):
    """(run folder of an untrained model that imitates, its weights moved so that they all matter; its synthesizer)."""
    with made_once("imitator") as (place, empty):
        if empty:
            plan = make_plan(place / "run", "model.voice_from=recording", cache=one_shape_cache)
            plan.folder.path.mkdir()
            plan.folder.write_run_files(plan.config, plan.cache, plan.spec)
            objective = plan.kind.objective(plan.config, plan.spec, plan.cache)
            state = TrainState(objective, plan.config.training, plan.spec)
            averages = state.optimizer.averages
            averages.assign_add(0.1 * tf.random.stateless_normal(averages.shape, [3, 0]))
            identity = identity_of(plan.config, plan.spec)
            save_checkpoint(plan.folder.checkpoints, state.arrays(), step=1, identity=identity, progress={})
        source = exported_voice(place / "run", lambda line: None)
    return place / "run", load_synthesizer(source, SynthesisOptions(nfe=2, temperature=0.0, speed=4.0))


@pytest.fixture(scope="session")
def recordings(tmp_path_factory):
    """A low and a high voice, the high one in stereo at 44.1 kHz; both, but for longer the high one."""
    folder = tmp_path_factory.mktemp("recordings")
    voices = {"low": ([110], 22_050, 1), "high": ([440], 44_100, 2), "both": ([110, 440, 440], 22_050, 1)}
    for name, (pitches, rate, channels) in voices.items():
        pitch = np.repeat(pitches, int(2.5 * rate))
        time = np.arange(len(pitch)) / rate
        samples = sum(np.sin(2 * np.pi * pitch * k * time) / k for k in range(1, 6)) * (0.1 + 0.05 * np.sin(9 * time))
        soundfile.write(folder / f"{name}.wav", np.stack([samples] * channels, axis=1), rate)
    return folder
