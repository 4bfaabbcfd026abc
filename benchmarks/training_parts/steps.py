"""Sections about the training step: (a) dynamic against locked, (c) input wait, (d) buckets."""

import time
from argparse import Namespace
from functools import cached_property
from pathlib import Path

import numpy as np
from setup.ljspeech_corpus import build, configure

from xtts.shared.cache.cache_spec import load_spec
from xtts.shared.config import Config
from xtts.trainer.data.batch_sizes import batch_sizes, typical_update
from xtts.trainer.data.training_bucket import training_buckets
from xtts.trainer.loop.chunk import CallResult
from xtts.trainer.loop.train_state import TrainState
from xtts.trainer.loop.train_step import StepFunctions
from xtts.trainer.loop.training_loop import TrainingLoop
from xtts.trainer.models.acoustic.objective import ACOUSTIC
from xtts.trainer.models.kind import kind_of

_FRAMES = ACOUSTIC.step.index("useful_frames")
_WARM_UP_STEPS = 2


class Runner:
    """A model on a cache, with its closed set of steps compiled."""

    def __init__(self, cache: Path, config: Config) -> None:
        self.spec = load_spec(cache)
        buckets = training_buckets(cache, self.spec, config)
        objective = kind_of(config).objective(config, self.spec, cache)
        state = TrainState(objective, config.training, self.spec)
        typical = typical_update(self.spec, batch_sizes(self.spec, config.training))
        self.step_functions = StepFunctions(objective, state.optimizer, config.training, state.step, typical=typical)
        began = time.perf_counter()
        self.step_functions.trace({bucket.number: bucket.signature for bucket in buckets if bucket.trains})
        self.loop = TrainingLoop(buckets, [self.step_functions], state.position)
        self.step_functions.compile()
        if self.loop.locked:
            self.loop.prepare()
        self.compile_seconds = time.perf_counter() - began
        self.results: list[CallResult] = []

    def take_turn(self, steps: int) -> None:
        """Run and record `steps` steps."""
        done = 0
        while done < steps:
            self.results.append(self.loop.run(steps - done))
            done += len(self.results[-1].metrics)

    @property
    def seconds(self) -> np.ndarray:
        """float64[n]: wall time of every recorded step."""
        return np.concatenate([result.step_seconds for result in self.results])

    @property
    def frames(self) -> np.ndarray:
        """float32[n]: useful frames of every step."""
        return np.concatenate([result.metrics[:, _FRAMES] for result in self.results])


class StepBench:
    """Runners shared by the sections, each created on first use."""

    def __init__(self, corpus: Path, options: Namespace) -> None:
        self.corpus, self.options = corpus, options

    def config(self, buckets: int, *, fixed: bool = True) -> Config:
        """The configuration of one cache."""
        flags = {"shapes.buckets": buckets, "shapes.pad_to_fixed_length": fixed}
        return configure(self.options.config, flags)

    def cache(self, buckets: int, *, fixed: bool = True) -> Path:
        """The cache with that many shapes, or with unpadded clips."""
        name = f"cache-{buckets}" if fixed else "cache-own-length"
        return build(self.corpus, self.options.work / name, self.config(buckets, fixed=fixed))

    @cached_property
    def locked(self) -> dict[int, Runner]:
        """Runners by number of buckets, measured in turns, so that a busy minute affects all of them."""
        runners = {n: Runner(self.cache(n), self.config(n)) for n in self.options.buckets}
        for runner in runners.values():
            runner.loop.run(_WARM_UP_STEPS)  # not recorded: fills the pipeline and allocates buffers
        rounds = self.options.rounds
        for _ in range(rounds):
            for runner in runners.values():
                runner.take_turn(-(-self.options.steps // rounds))
        return runners


def dynamic_against_locked(bench: StepBench) -> dict[str, object]:
    """(a) The same clips, batch size and model: one precompiled shape, and a compilation for every new shape."""
    locked, dynamic = bench.locked[1], Runner(bench.cache(1, fixed=False), bench.config(1, fixed=False))
    dynamic.take_turn(bench.options.dynamic_batches)  # the first batch counts, too
    mean, slow = float(locked.seconds.mean()), float(dynamic.seconds.mean())
    rows = [_step_row("dynamic, traced for every shape", dynamic)]
    rows += [_step_row(f"locked, {n} shape{'s' * (n > 1)}", runner) for n, runner in bench.locked.items()]
    fast = bench.locked[max(bench.locked)].seconds[: len(dynamic.seconds)]
    return {
        "title": f"average step over {len(dynamic.seconds)} batches whose shapes vary",
        "times_faster": slow / mean, "target": 30,
        "break_even_steps": locked.compile_seconds / max(slow - mean, 1e-9),
        "break_even": "steps after which compiling the one shape ahead has paid for itself",
        "batch_size": locked.loop.buckets[0].batch_size,
        "seconds_by_step": {"dynamic": dynamic.seconds.tolist(), "locked": fast.tolist()}, "table": rows,
    }


def _step_row(name: str, runner: Runner) -> dict[str, object]:
    seconds = runner.seconds
    return {
        "step": name, "mean_seconds": float(seconds.mean()), "least": float(seconds.min()),
        "most": float(seconds.max()), "batches": len(seconds), "traces": runner.step_functions.guard.count("training"),
        "compiled_before_step_1_seconds": runner.compile_seconds if runner.loop.locked else 0.0,
    }


def input_wait(bench: StepBench) -> dict[str, object]:
    """(c) Share of the steps' time that the device waited for a batch."""
    waits = {n: sum(result.wait_seconds.sum() for result in runner.results) for n, runner in bench.locked.items()}
    shares = {n: float(wait / bench.locked[n].seconds.sum()) for n, wait in waits.items()}
    rows = [{"shapes": n, "steps": len(bench.locked[n].seconds), "input_wait_share": shares[n]} for n in shares]
    title = "input wait of the training run"
    return {"title": title, "input_wait_share": max(shares.values()), "target": 0.01, "table": rows}


def buckets(bench: StepBench) -> dict[str, object]:
    """(d) Useful frames/s against one shape that holds every clip, with constant frames per batch."""
    rates = {n: float(runner.frames.sum() / runner.seconds.sum()) for n, runner in bench.locked.items()}
    rows = [
        {"shapes": n, "times_one_shape": rate / rates[1], "useful_frames_per_second": rate,
         "fill": bench.locked[n].spec.statistics.fill, "compile_seconds": bench.locked[n].compile_seconds}
        for n, rate in rates.items()
    ]
    most, title = max(rates), "useful frames/s on the lengths of LJSpeech-1.1"
    ratio = rates[most] / rates[1]
    return {"title": title, "times_one_shape": ratio, "shapes": most, "target_at_8_shapes": 1.35, "table": rows}
