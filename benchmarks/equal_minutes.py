"""Trains variants of a configuration for the same minutes, and compares how well they speak held-out sentences.

    python benchmarks/equal_minutes.py NAME ["NAME:SECTION.KEY=VALUE;SECTION.KEY=VALUE" ...] [--minutes 5]
        [--seeds 0 1 2] [--cache features] [--config tiny] [--work build/equal-minutes] [--asr base]
        [--quick] [--out FILE.json]

Each variant is first timed, in turns with the others, in two short runs; minutes over the time of a step are its steps,
so that the schedule of the learning rate ends with the minutes. Then every seed of every variant trains and is
evaluated as by `xtts-synth evaluate`. Nothing else should run meanwhile. Results in --work are reused: an
interrupted benchmark continues, and variants can be added. A setting `init-from=DIR` is the command's --init-from.
With --steps nothing is timed. With --asr the sentences are judged, too. The table has the mean over the seeds and, with
several, the standard deviation after ±; runs that --out has already stay in it.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from reporting.report import machine, report, section_lines
from setup.amounts import parse, program_parser
from setup.commands import command, lines_of

from xtts.trainer.evaluation.evaluate import SYNTHESISED
from xtts.trainer.evaluation.systems import ROWS
from xtts.trainer.stored.stored_model import open_model

FULL = {"minutes": 5.0, "seeds": [0], "timed_steps": 200, "limit": 1000}
QUICK = {"minutes": 0.02, "seeds": [0], "timed_steps": 10, "limit": 4}
ROUNDS = 2

Run = dict[str, Any]
"""`variant`, `steps`, `parameters`, `settings`, `seed`, and `figures` by name."""
Means = dict[str, float]
"""Figures by their key in `ROWS`."""


def main() -> None:
    parser = program_parser(__doc__, QUICK)
    parser.add_argument("variants", nargs="+", type=lambda text: text.partition(":"), metavar="NAME[:KEY=VALUE;...]")
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--steps", type=int, help="of every variant, instead of minutes")
    parser.add_argument("--seeds", type=int, nargs="+")
    parser.add_argument("--cache", type=Path, default=Path("features"))
    parser.add_argument("--config", default="tiny")
    parser.add_argument("--asr", help="have them judged, with this Whisper")
    parser.add_argument("--work", type=Path, default=Path("build/equal-minutes"), help="folder of the runs")
    options = parse(parser, full=FULL, quick=QUICK)
    asked = {name: settings.split(";") if settings else [] for name, _, settings in options.variants}
    seconds = {} if options.steps else time_variants(asked, options)
    runs = []
    for name, settings in asked.items():
        steps = options.steps or max(1, round(60 * options.minutes / seconds[name]))
        for seed in options.seeds:
            figures, floors = train(name, settings, seed, steps, options)
            weights = open_model(folder(name, seed, options)).averages().values()
            about = {"variant": name, "steps": steps, "parameters": sum(weight.size for weight in weights)}
            runs.append(about | {"settings": " ".join(settings), "seed": seed, "figures": figures})
    runs = merged(runs, options.out)
    rows = rows_of(runs)
    known = ({"variant": name} | {key: shown([means[key]]) for key in means} for name, means in floors.items())
    section = {"title": "held-out sentences", "config": options.config, **machine(["tensorflow"])}
    section |= {"table": [*rows, *(dict.fromkeys(rows[0]) | row for row in known)]}
    report(section_lines("equal minutes", section), section | {"runs": runs}, options.out)


def merged(runs: Sequence[Run], out: Path | None) -> list[Run]:
    """Runs of the file, a new one in the place of that of the same variant, steps and seed, then the other new ones."""
    stored = json.loads(out.read_text())["runs"] if out and out.is_file() else []
    return list({(run["variant"], run["steps"], run["seed"]): run for run in [*stored, *runs]}.values())


def rows_of(runs: Sequence[Run]) -> list[dict[str, object]]:
    """A row for every variant and number of steps, over its seeds."""
    seeds: dict[tuple[object, object], list[Run]] = {}
    for run in runs:
        seeds.setdefault((run["variant"], run["steps"]), []).append(run)
    return [
        {"variant": name, "seeds": len(found), "parameters": found[0]["parameters"], "steps": steps}
        | {key: shown([run["figures"][key] for run in found]) for key in found[0]["figures"]}
        | {"settings": found[0]["settings"]} for (name, steps), found in seeds.items()
    ]


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


def train(
    name: str, settings: Sequence[str], seed: int, steps: int, options: argparse.Namespace
) -> tuple[Means, dict[str, Means]]:
    """Train one seed and evaluate it: (its figures, those of the recordings by system).

    `minutes` is what its steps really took, `flow_loss` that of held-out clips.
    """
    run = folder(name, seed, options)
    judged = run / f"evaluation{'-judged' * bool(options.asr)}.json"
    judge = ["--judge", "--asr", options.asr] if options.asr else []
    if not judged.is_file():
        run_training(settings, run, seed, steps, options)
        command("synth", "evaluate", "--ckpt", run, "--limit", options.limit, *judge, "--json", judged, shown=True)
    systems = json.loads(judged.read_text())["systems"]
    means = {name: {key: system[key] for key in ROWS if key in system} for name, system in systems.items()}
    flow = lines_of(run, "validation")[-1]["flow"]
    return {"minutes": sum(step_seconds(run)) / 60, "flow_loss": flow} | means.pop(SYNTHESISED), means


def folder(name: str, seed: int, options: argparse.Namespace) -> Path:
    length = f"{options.steps}-steps" if options.steps else f"{options.minutes:g}-minutes"
    return Path(options.work / f"{name}-{length}-seed-{seed}")


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
    if (made := len(step_seconds(run))) < steps:
        sys.exit(f"{run} was stopped after {made} of {steps} steps; the same command continues")


def step_seconds(run: Path) -> list[float]:
    """Of every training step, waiting for its batch included."""
    return [line["step_seconds"] for line in lines_of(run)]


def shown(values: Sequence[float | None]) -> str | None:
    """Mean, and with several values their standard deviation; None is a figure that was not measured as today."""
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return f"{known[0]:.3f}" if known else None
    return f"{statistics.fmean(known):.3f} ±{statistics.stdev(known):.3f}"


if __name__ == "__main__":
    main()
