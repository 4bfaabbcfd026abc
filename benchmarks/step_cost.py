"""Time of a training step by model size, and the shares of alignment search and optimizer.

    python benchmarks/step_cost.py [--sizes tiny small normal big] [--quick] [--rounds 3] [--out FILE.json]

Times one locked step on a synthetic batch with real shapes and lengths, and separately its two compiled functions (the
losses with their gradients, the optimizer's update) and the alignment search (scores included). The pieces take turns,
so that a busy moment of the machine affects all of them; the median of the rounds counts, without compilation.
Activations are float32, the fastest type on a CPU.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from reporting.report import machine, section_lines, write_json
from setup.amounts import fill_defaults

from xtts.shared.config_files import load_config
from xtts.trainer.system.tensorflow_import import tensorflow_import

with tensorflow_import(compile_cache=False):
    import tensorflow as tf
    from training_parts.locked_step import LONGEST, LockedStep, build_step

    from xtts.trainer.data.batch import Batch
    from xtts.trainer.engine import metrics
    from xtts.trainer.engine.train_step import locked
    from xtts.trainer.model.alignment import gaussian_scores, search_durations

SIZES = ("tiny", "small", "normal", "big")
STEP, LOSSES, SEARCH, UPDATE = "step", "losses and gradients", "alignment search", "optimizer"
FULL = {"sizes": SIZES, "batch_size": 2, "tokens": LONGEST[0], "frames": LONGEST[1], "rounds": 3}
QUICK = {"sizes": ["tiny"], "batch_size": 2, "tokens": 48, "frames": 208, "rounds": 3}

Call = Callable[[], tf.Tensor]


@dataclass(frozen=True, kw_only=True)
class Cost:
    """One size: medians in seconds."""

    parameters: int
    useful_frames: int
    seconds: dict[str, float]
    compile_seconds: dict[str, float]

    def share(self, piece: str) -> float:
        """Share of the whole step."""
        return self.seconds[piece] / self.seconds[STEP]


def main() -> None:
    options = parse_arguments()
    rows = [row(size, measure(size, options)) for size in options.sizes]
    measured = {name: getattr(options, name) for name in ("batch_size", "tokens", "frames", "rounds", "set")}
    figures = {"title": "a training step by size", **measured, **machine(["lockstep-tts", "tensorflow"]), "table": rows}
    print("\n".join(section_lines("step cost", figures)))
    if options.out:
        write_json(options.out, figures)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sizes", nargs="+", metavar="SIZE", help="files of configs/")
    parser.add_argument("--quick", action="store_true", help="the smallest size and short clips")
    parser.add_argument("--batch-size", type=int, help="B")
    parser.add_argument("--tokens", type=int, help="L")
    parser.add_argument("--frames", type=int, help="T")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--set", nargs="+", default=(), metavar="KEY=VALUE", help="as model.voice_latents=16")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    options = parser.parse_args()
    fill_defaults(options, full=FULL, quick=QUICK)
    return options


def measure(size: str, options: argparse.Namespace) -> Cost:
    config = load_config(size, assignments=["training.mixed_precision=float32", *options.set])
    made = build_step(config, clips=options.batch_size, shape=(options.tokens, options.frames))
    calls, compiled = pieces(made), {}
    for name, call in calls.items():
        compiled[name] = seconds_of(call)
        print(f"{size}: {name} compiled in {compiled[name]:.1f} s", file=sys.stderr, flush=True)
    turns: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(options.rounds):
        for name, call in calls.items():
            turns[name].append(seconds_of(call))
    return Cost(
        parameters=made.steps.model.parameter_count,
        useful_frames=made.useful_frames,
        seconds={name: statistics.median(values) for name, values in turns.items()},
        compile_seconds=compiled,
    )


def seconds_of(call: Call) -> float:
    began = time.perf_counter()
    call().numpy()
    return time.perf_counter() - began


def pieces(made: LockedStep) -> dict[str, Call]:
    """The step and its parts, each compiled for the shapes of the batch."""
    steps, batch = made.steps, Batch(*map(tf.constant, made.batch))
    mel = batch.mel
    mean = tf.random.stateless_normal([*batch.tokens.shape, mel.shape[2]], [1, 2])

    def search(mean: tf.Tensor, mel: tf.Tensor, token_length: tf.Tensor, mel_length: tf.Tensor) -> tf.Tensor:
        return search_durations(gaussian_scores(mean, mel), token_length, mel_length)

    gradients = [tf.identity(weight) for weight in steps.optimizer.weights]
    aligned = [mean, tf.cast(mel, tf.float32), batch.token_length, batch.mel_length]
    specs = [tf.TensorSpec(part.shape, part.dtype) for part in aligned]
    return {
        LOSSES: lambda: steps.gradient_steps[0](*batch)[0],
        UPDATE: lambda: steps.update(tf.ones([len(metrics.LOSSES)]), tf.constant(1), *gradients),
        STEP: partial(steps.train, 0, batch),
        SEARCH: partial(locked(search, specs), *aligned),
    }


def row(size: str, cost: Cost) -> dict[str, object]:
    """A row of the table."""
    milliseconds = {f"{name.replace(' ', '_')}_ms": round(1000 * value, 2) for name, value in cost.seconds.items()}
    return {
        "size": size,
        "parameters": cost.parameters,
        **milliseconds,
        "share_of_alignment_search": round(cost.share(SEARCH), 4),
        "share_of_optimizer": round(cost.share(UPDATE), 4),
        "useful_frames_per_second": round(cost.useful_frames / cost.seconds[STEP]),
        "compile_seconds": round(sum(cost.compile_seconds.values()), 1),
    }


if __name__ == "__main__":
    main()
