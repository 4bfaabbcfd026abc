"""Trains variants of a configuration for the same minutes, and compares how well they speak held-out sentences.

    python benchmarks/equal_minutes.py NAME ["NAME:SECTION.KEY=VALUE;SECTION.KEY=VALUE" ...] [--minutes 5]
        [--seeds 0 1 2] [--cache features] [--config tiny] [--work build/equal-minutes] [--quick] [--out FILE.json]

Each variant is first timed, in turns with the others, in two short runs; minutes over the time of a step are its steps,
so that the schedule of the learning rate ends with the minutes. Then every seed of every variant trains and is
evaluated as by `xtts-synth evaluate`. Nothing else should run meanwhile. Steps and runs that are in --work already are
taken from there: an interrupted benchmark goes on, and a variant can be added later. A setting `init-from=DIR` is the
command's --init-from. With --steps every variant trains for so many steps, and nothing is timed.

The table has the mean over the seeds and, with several, the standard deviation after ±.
"""

import argparse
import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from reporting.report import machine, section_lines, write_json
from setup.amounts import fill_defaults
from setup.commands import command

from xtts.trainer.evaluation.figures import Figures
from xtts.trainer.run.stored_model import open_model
from xtts.trainer.synth.evaluate import SYNTHESISED, VOCODED

FULL = {"minutes": 5.0, "seeds": [0], "timed_steps": 200, "limit": 1000}
QUICK = {"minutes": 0.02, "seeds": [0], "timed_steps": 10, "limit": 4}
ROUNDS = 2


@dataclass(frozen=True, kw_only=True)
class Variant:
    """A configuration by name."""

    name: str
    settings: tuple[str, ...]
    """`section.key=value`, or `init-from=DIR`."""

    @property
    def flags(self) -> list[str]:
        """For the command line of xtts-train."""
        return [word for setting in self.settings for word in _option(setting)]


def _option(setting: str) -> tuple[str, str]:
    key, _, value = setting.partition("=")
    return ("--init-from", value) if key == "init-from" else ("--set", setting)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """One run."""

    minutes: float
    """That its steps really took."""
    parameters: int
    flow_loss: float
    """Of held-out clips."""
    figures: Mapping[str, float]
    """By field of `Figures`."""
    floor: Mapping[str, float]
    """Those of the recordings, vocoded."""
    halves: float | None
    """Fréchet distance between the halves of the recordings."""


def main() -> None:
    options = parse_arguments()
    variants = [parse_variant(text) for text in options.variants]
    seconds = {} if options.steps else time_variants(variants, options)
    rows = []
    for variant in variants:
        steps = options.steps or max(1, round(60 * options.minutes / seconds[variant.name]))
        outcomes = [train(variant, seed, steps, options) for seed in options.seeds]
        rows.append(row(variant, steps, outcomes))
    rows.append(dict.fromkeys(rows[0]) | {"variant": "recordings, vocoded"} | rounded(outcomes[-1].floor))
    title = f"held-out sentences after {length(options)} of training each"
    figures = {"title": title, "config": options.config, "seeds": len(options.seeds), **machine(["tensorflow"])}
    figures |= {"frechet_distance_of_recordings_in_halves": outcomes[-1].halves, "table": rows}
    print("\n".join(section_lines("equal minutes", figures)))
    if options.out:
        write_json(options.out, figures)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("variants", nargs="+", metavar="NAME[:KEY=VALUE;...]")
    parser.add_argument("--quick", action="store_true", help=f"a second of training: {QUICK}")
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--steps", type=int, help="of every variant, instead of minutes")
    parser.add_argument("--seeds", type=int, nargs="+")
    parser.add_argument("--timed-steps", type=int, help="length of a run that times a variant")
    parser.add_argument("--limit", type=int, help="most held-out sentences to speak")
    parser.add_argument("--cache", type=Path, default=Path("features"))
    parser.add_argument("--config", default="tiny")
    parser.add_argument("--work", type=Path, default=Path("build/equal-minutes"), help="folder of the runs")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    options = parser.parse_args()
    fill_defaults(options, full=FULL, quick=QUICK)
    return options


def parse_variant(text: str) -> Variant:
    name, _, settings = text.partition(":")
    return Variant(name=name, settings=tuple(settings.split(";")) if settings else ())


def time_variants(variants: Sequence[Variant], options: argparse.Namespace) -> dict[str, float]:
    """Seconds of a step by name: the fastest of the rounds, in which the variants take turns."""
    found: dict[str, list[float]] = {variant.name: [] for variant in variants}
    for number in range(ROUNDS):
        for variant in variants:
            run = options.work / f"{variant.name}-timed-{number}"
            run_training(variant, run, number, options.timed_steps, options)
            # The first steps of a process are slower.
            found[variant.name].append(statistics.fmean(step_seconds(run)[options.timed_steps // 4 :]))
    return {name: min(seconds) for name, seconds in found.items()}


def train(variant: Variant, seed: int, steps: int, options: argparse.Namespace) -> Outcome:
    """Train one seed and evaluate it."""
    run = options.work / f"{variant.name}-{length(options).replace(' ', '-')}-seed-{seed}"
    report = run / "evaluation.json"
    if not report.is_file():
        run_training(variant, run, seed, steps, options)
        command("synth", "evaluate", "--ckpt", run, "--limit", options.limit, "--json", report, shown=True)
    evaluation = json.loads(report.read_text())
    synthesised, vocoded = ({field.name: evaluation["systems"][name][field.name] for field in fields(Figures)}
                            for name in (SYNTHESISED, VOCODED))  # fmt: skip
    validation = [line["flow"] for line in metrics(run) if line["split"] == "validation"]
    return Outcome(
        minutes=sum(step_seconds(run)) / 60,
        parameters=sum(weight.size for weight in open_model(run).averages().values()),
        flow_loss=validation[-1],
        figures=synthesised,
        floor=vocoded,
        halves=evaluation["frechet_floor"],
    )


def length(options: argparse.Namespace) -> str:
    return f"{options.steps} steps" if options.steps else f"{options.minutes:g} minutes"


def run_training(variant: Variant, run: Path, seed: int, steps: int, options: argparse.Namespace) -> None:
    """Train, or continue, a run of so many steps; validation and samples only at its end."""
    if (run / "metrics.jsonl").is_file() and len(step_seconds(run)) >= steps:
        return
    pauses = {"validate_every": steps, "checkpoint_every": steps, "samples_every": "null", "seed": seed}
    sets = [word for key, value in pauses.items() for word in ("--set", f"training.{key}={value}")]
    asked = ("--config", options.config, "--cache", options.cache, "--out", run, "--steps", steps)
    command("train", *asked, "--resume", *variant.flags, *sets, shown=True)


def metrics(run: Path) -> list[dict[str, float]]:
    """Lines of metrics.jsonl."""
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def step_seconds(run: Path) -> list[float]:
    """Of every training step, waiting for its batch included."""
    return [line["step_seconds"] for line in metrics(run) if line["split"] == "train"]


def row(variant: Variant, steps: int, outcomes: Sequence[Outcome]) -> Mapping[str, object]:
    """A line of the table."""
    return {
        "variant": variant.name,
        "parameters": outcomes[0].parameters,
        "steps": steps,
        "minutes": shown([outcome.minutes for outcome in outcomes]),
        "flow_loss": shown([outcome.flow_loss for outcome in outcomes]),
        **{name: shown([outcome.figures[name] for outcome in outcomes]) for name in outcomes[0].figures},
        "settings": " ".join(variant.settings),
    }


def rounded(figures: Mapping[str, float]) -> dict[str, str]:
    return {name: f"{value:.3f}" for name, value in figures.items()}


def shown(values: Sequence[float]) -> str:
    """Mean, and with several values their standard deviation."""
    mean = f"{statistics.fmean(values):.3f}"
    return f"{mean} ±{statistics.stdev(values):.3f}" if len(values) > 1 else mean


if __name__ == "__main__":
    main()
