"""The duration predictor's gradient clipped separately, against one global norm over all weights.

    python benchmarks/clipping.py --cache features [--steps 500] [--every 50] [--config tiny] [--out FILE.json]

Trains twice with the same cache, seed and steps, each in its own process; validation every `--every` steps. Prints the
losses of both and the duration predictor's share of the global norm in the first steps. With --out the curves are drawn
next to it, as clipping.svg.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from reporting.pictures import OTHERS, OURS, curves
from reporting.report import machine, section_lines, write_json
from setup.commands import script

APART, TOGETHER = "clipped apart", "one global norm"
FIRST_STEPS = 100
COLUMNS = ("loss", "prior", "flow", "duration")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--cache", type=Path, default=Path("features"))
    parser.add_argument("--config", default="tiny")
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--every", type=int, default=50, help="steps between validations")
    parser.add_argument("--out", type=Path, help="write the figures as JSON, and the curves beside it")
    parser.add_argument("--variant", choices=(APART, TOGETHER), help=argparse.SUPPRESS)
    parser.add_argument("--run", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.variant:
        train(options)
        return
    with tempfile.TemporaryDirectory(prefix="lockstep-clipping-") as folder:
        runs = {name: run(name, Path(folder) / str(i), options) for i, name in enumerate((APART, TOGETHER))}
    figures = summarise(runs, options)
    print("\n".join(section_lines("clipping", figures)))
    if options.out:
        write_json(options.out, figures)
        lines = {name: [(row["step"], row["loss"]) for row in rows["validation"]] for name, rows in runs.items()}
        curves(lines, {APART: OURS, TOGETHER: OTHERS}, "validation loss", options.out.with_name("clipping.svg"))


def run(name: str, folder: Path, options: argparse.Namespace) -> dict[str, list[dict[str, Any]]]:
    """Train in a separate process: lines of metrics.jsonl, by split."""
    script(__file__, *sys.argv[1:], "--variant", name, "--run", folder, shown=True)
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    return {split: [row for row in rows if row["split"] == split] for split in ("train", "validation")}


def train(options: argparse.Namespace) -> None:
    """One run; for one global norm the update's clipping is replaced."""
    from rich.console import Console

    from xtts.trainer.run.run_plan import make_plan
    from xtts.trainer.system.tensorflow_import import tensorflow_import

    settings = [f"training.validate_every={options.every}", "training.samples_every=null"]
    flags = {"training.steps": options.steps}
    plan = make_plan([options.config], settings, flags, cache=options.cache, out=options.run, resume=None,
                     init_from=None)  # fmt: skip
    with tensorflow_import():
        import tensorflow as tf

        from xtts.trainer.engine import train_step as step
        from xtts.trainer.run.trainer import train as run_plan

    def together(gradients: list[tf.Tensor], groups: list[int], limit: float) -> tuple[list[tf.Tensor], tf.Tensor]:
        _, norms = apart(gradients, groups, limit)
        whole = tf.norm(norms)
        return [gradient * limit / tf.maximum(whole, limit) for gradient in gradients], norms

    apart = step.clip_by_group
    if options.variant == TOGETHER:
        step.clip_by_group = together
    run_plan(plan, Console(file=sys.stderr))


def summarise(runs: dict[str, dict[str, list[dict[str, Any]]]], options: argparse.Namespace) -> dict[str, Any]:
    """Final and intermediate losses of both."""
    norms = np.array([
        (row["gradient_norm"], row["duration_gradient_norm"]) for row in runs[TOGETHER]["train"][:FIRST_STEPS]
    ])  # fmt: skip
    share = norms[:, 1] / np.hypot(norms[:, 0], norms[:, 1])
    return {
        "title": f"gradient clipping, {options.config}, {options.steps} steps, same seed",
        "median_share_of_the_duration_predictor_in_the_global_norm": float(np.median(share)),
        "median_scale_of_the_other_gradients": float(np.median(1 / np.maximum(np.hypot(*norms.T), 1.0))),
        "of_the_first_steps": FIRST_STEPS,
        **machine(["lockstep-tts", "tensorflow"]),
        "table": [
            {"clipping": name, "step": row["step"], **{column: round(row[column], 4) for column in COLUMNS}}
            for name, rows in runs.items()
            for row in rows["validation"]
        ],
    }


if __name__ == "__main__":
    main()
