"""Trains variants of a configuration for the same minutes, and compares how well they speak held-out sentences.

    python benchmarks/equal_minutes.py NAME ["NAME:SECTION.KEY=VALUE;SECTION.KEY=VALUE" ...] [--minutes 5]
        [--seeds 0 1 2] [--cache features] [--config tiny] [--work build/equal-minutes] [--temperature 0.9] [--quick]
        [--out FILE.json]

Each variant is first timed, in turns with the others, in two short runs; minutes over the time of a step are its steps,
so that the schedule of the learning rate ends with the minutes. Then every seed of every variant trains and is
evaluated as by `xtts-synth evaluate`. Nothing else should run meanwhile. Steps and runs that are in --work already are
taken from there: an interrupted benchmark goes on, and a variant can be added later. A setting `init-from=DIR` is the
command's --init-from. With --steps every variant trains for so many steps, and nothing is timed.

The table has the mean over the seeds and, with several, the standard deviation after ±. Rows of other variants or steps
that --out has already stay in it: benchmarks/real_voice.json, the README's table, is of several calls.
"""

import argparse
import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path

from reporting.report import machine, report, section_lines
from setup.amounts import parse, program_parser
from setup.commands import command
from setup.runs import lines_of

from xtts.trainer.evaluation.figures import Figures
from xtts.trainer.run.stored_model import open_model
from xtts.trainer.synth.evaluate import SYNTHESISED, VOCODED

FULL = {"minutes": 5.0, "seeds": [0], "timed_steps": 200, "limit": 1000}
QUICK = {"minutes": 0.02, "seeds": [0], "timed_steps": 10, "limit": 4}
ROUNDS = 2
VOCODED_ROW = "recordings, vocoded"

Outcome = tuple[dict[str, float], dict[str, float], float | None]
"""Of one run: figures by name; those of the recordings, vocoded; Fréchet distance between the recordings in halves."""


def main() -> None:
    options = parse_arguments()
    asked = {name: settings.split(";") if settings else [] for name, _, settings in options.variants}
    seconds = {} if options.steps else time_variants(asked, options)
    rows: list[dict[str, object]] = []
    for name, settings in asked.items():
        steps = options.steps or max(1, round(60 * options.minutes / seconds[name]))
        outcomes = [train(name, settings, seed, steps, options) for seed in options.seeds]
        weights = open_model(folder(name, options.seeds[0], options)).averages().values()
        row = {"variant": name, "seeds": len(options.seeds), "parameters": sum(weight.size for weight in weights)}
        row |= {"steps": steps} | {key: shown([found[key] for found, _, _ in outcomes]) for key in outcomes[0][0]}
        rows.append(row | {"settings": " ".join(settings)})
    _, floor, halves = outcomes[-1]
    vocoded = {"variant": VOCODED_ROW} | {key: shown([value]) for key, value in floor.items()}
    title = f"held-out sentences after {length(options)} of training each"
    section = {"title": title, "config": options.config, **machine(["tensorflow"])}
    section |= {"frechet_distance_of_recordings_in_halves": halves}
    section |= {"table": [*other_rows(rows, options.out), *rows, dict.fromkeys(rows[0]) | vocoded]}
    report(section_lines("equal minutes", section), section, options.out)


def other_rows(rows: Sequence[Mapping[str, object]], out: Path | None) -> list[dict[str, object]]:
    """Rows that the file has of other variants or steps, but for its last one, which is of the recordings."""
    if not out or not out.is_file():
        return []
    fresh = {(row["variant"], row["steps"]) for row in rows}
    return [row for row in json.loads(out.read_text())["table"][:-1] if (row["variant"], row["steps"]) not in fresh]


def parse_arguments() -> argparse.Namespace:
    parser = program_parser(__doc__, QUICK)
    parser.add_argument("variants", nargs="+", type=lambda text: text.partition(":"), metavar="NAME[:KEY=VALUE;...]")
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--steps", type=int, help="of every variant, instead of minutes")
    parser.add_argument("--seeds", type=int, nargs="+")
    parser.add_argument("--timed-steps", type=int, help="length of a run that times a variant")
    parser.add_argument("--limit", type=int, help="most held-out sentences to speak")
    parser.add_argument("--cache", type=Path, default=Path("features"))
    parser.add_argument("--config", default="tiny")
    parser.add_argument("--temperature", type=float, default=0.9, help="of the noise of the sentences that are judged")
    parser.add_argument("--work", type=Path, default=Path("build/equal-minutes"), help="folder of the runs")
    return parse(parser, full=FULL, quick=QUICK)


def time_variants(variants: Mapping[str, Sequence[str]], options: argparse.Namespace) -> dict[str, float]:
    """Seconds of a step by name: the fastest of the rounds, in which the variants take turns."""
    found: dict[str, list[float]] = {name: [] for name in variants}
    for number in range(ROUNDS):
        for name, settings in variants.items():
            run = options.work / f"{name}-timed-{number}"
            run_training(settings, run, number, options.timed_steps, options)
            # The first steps of a process are slower.
            found[name].append(statistics.fmean(step_seconds(run)[options.timed_steps // 4 :]))
    return {name: min(seconds) for name, seconds in found.items()}


def train(name: str, settings: Sequence[str], seed: int, steps: int, options: argparse.Namespace) -> Outcome:
    """Train one seed and evaluate it; `minutes` is what its steps really took, `flow_loss` that of held-out clips."""
    run = folder(name, seed, options)
    judged = run / f"evaluation-{options.temperature:g}.json"
    if not judged.is_file():
        run_training(settings, run, seed, steps, options)
        command("synth", "evaluate", "--ckpt", run, "--limit", options.limit,
                "--temperature", options.temperature, "--json", judged, shown=True)  # fmt: skip
    evaluation = json.loads(judged.read_text())
    spoken, floor = ({field.name: evaluation["systems"][system][field.name] for field in fields(Figures)}
                     for system in (SYNTHESISED, VOCODED))  # fmt: skip
    flow = lines_of(run, "validation")[-1]["flow"]
    return {"minutes": sum(step_seconds(run)) / 60, "flow_loss": flow} | spoken, floor, evaluation["frechet_floor"]


def folder(name: str, seed: int, options: argparse.Namespace) -> Path:
    return Path(options.work / f"{name}-{length(options).replace(' ', '-')}-seed-{seed}")


def length(options: argparse.Namespace) -> str:
    return f"{options.steps} steps" if options.steps else f"{options.minutes:g} minutes"


def run_training(settings: Sequence[str], run: Path, seed: int, steps: int, options: argparse.Namespace) -> None:
    """Train, or continue, a run of so many steps; validation and samples only at its end."""
    if (run / "metrics.jsonl").is_file() and len(step_seconds(run)) >= steps:
        return
    pauses = {"validate_every": steps, "checkpoint_every": steps, "samples_every": "null", "seed": seed}
    words = ["--config", options.config, "--cache", options.cache, "--out", run, "--steps", steps, "--resume"]
    for setting in (*settings, *(f"training.{key}={value}" for key, value in pauses.items())):
        key, _, value = setting.partition("=")
        words += ["--init-from", value] if key == "init-from" else ["--set", setting]
    command("train", *words, shown=True)


def step_seconds(run: Path) -> list[float]:
    """Of every training step, waiting for its batch included."""
    return [line["step_seconds"] for line in lines_of(run)]


def shown(values: Sequence[float]) -> str:
    """Mean, and with several values their standard deviation."""
    mean = f"{statistics.fmean(values):.3f}"
    return f"{mean} ±{statistics.stdev(values):.3f}" if len(values) > 1 else mean


if __name__ == "__main__":
    main()
