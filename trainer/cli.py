"""`xtts-train`: everything that can be wrong is said before TensorFlow is imported."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from xtts.shared.errors import LockstepError, reported
from xtts.shared.flags import DEFAULT_CACHE, config_options, resolve

if TYPE_CHECKING:
    from xtts.shared.cache_spec import CacheSpec
    from xtts.shared.config import Config, TrainingConfig
    from xtts.trainer.plan import RunPlan
    from xtts.trainer.run_folder import RunFolder

RUNS = Path("runs")


@click.command(context_settings={"show_default": True})
@config_options
@click.option(
    "--cache", type=click.Path(path_type=Path), help="Cache of stage 1.  [default: features, or the run's own]"
)
@click.option("--out", type=click.Path(path_type=Path), help="Run folder.  [default: runs/SIZE-CACHE]")
@click.option(
    "--resume",
    is_flag=False,
    flag_value="",
    metavar="[CKPT]",
    help="Continue a run folder or one checkpoint; without a value, --out where it holds a run.",
)
@click.option(
    "--init-from",
    type=click.Path(path_type=Path),
    metavar="CKPT",
    help="Start a new run from the averaged weights of another.",
)
@click.option("--steps", type=click.IntRange(min=1), help="training.steps")
@click.option("--epochs", type=click.IntRange(min=1), help="training.epochs, which decides the steps")
def main(
    config: tuple[str, ...], assignments: tuple[str, ...], flags: Mapping[str, object], cache: Path | None,
    out: Path | None, resume: str | None, init_from: Path | None, steps: int | None, epochs: int | None,
) -> None:  # fmt: skip
    """Train on a cache of xtts-precompute with locked, compiled steps."""
    with reported():
        if steps is not None:
            flags = {**flags, "training.steps": steps, "training.epochs": None}
        if epochs is not None:
            flags = {**flags, "training.epochs": epochs}
        plan = make_plan(config, assignments, flags, cache=cache, out=out, resume=resume, init_from=init_from)
        run(plan)


def make_plan(
    config: Sequence[str], assignments: Sequence[str], flags: Mapping[str, object], *,
    cache: Path | None, out: Path | None, resume: str | None, init_from: Path | None,
) -> "RunPlan":  # fmt: skip
    """Resolve and check everything that needs no TensorFlow."""
    from xtts.shared.cache_spec import load_spec
    from xtts.trainer.batches import batch_sizes, with_steps
    from xtts.trainer.checkpoint import check_resumable, check_weights, describe, find_checkpoint
    from xtts.trainer.plan import RunPlan
    from xtts.trainer.run_folder import RunFolder

    checkpoint, source = find_run(out, resume)
    if source and not config:
        config = (str(source.config_file),)
    resolved = resolve(config, assignments, flags)
    cache = cache or (source.cache() if source else None) or Path(DEFAULT_CACHE)
    spec = load_spec(cache)
    check_features(resolved, spec, cache)
    check_files(resolved, cache)
    folder = RunFolder(out) if out else source or RunFolder(RUNS / f"{resolved.model.size}-{spec.identity[:8]}")
    named = checkpoint is not None and Path(str(resume)).resolve() == checkpoint.resolve()
    if resume == "":
        checkpoint = newest(folder)
    elif newest(folder) and not (source and folder.path.resolve() == source.path.resolve()):
        raise LockstepError(
            str(folder.path), found="holds a run already", fix="continue it with --resume, or give another --out"
        )
    sizes = batch_sizes(spec, resolved.training)
    weights = find_checkpoint(init_from) if init_from else None
    if checkpoint:
        check_resumable(checkpoint, describe(resolved, spec))
    elif weights:
        check_weights(weights, describe(resolved, spec))
    resolved = with_steps(resolved, spec, sizes)
    if checkpoint and not named:
        checkpoint = longer_run(checkpoint, resolved.training)
    return RunPlan(
        config=resolved, cache=cache, spec=spec, sizes=sizes, folder=folder, resume=checkpoint, init_from=weights,
    )  # fmt: skip


def longer_run(checkpoint: Path, training: "TrainingConfig") -> Path:
    """Where a run goes on that is given more steps: before its learning rate was decayed towards its first end."""
    from xtts.trainer.checkpoint import before_decay, step_of

    start, done = before_decay(checkpoint, training), step_of(checkpoint)
    if done >= training.steps or start == checkpoint:
        return checkpoint
    if start is None:
        click.echo(
            f"{checkpoint}: made with another learning-rate schedule, or by a version that did not store it, and no "
            "checkpoint from before its decay is left: the learning rate may rise here"
        )
        return checkpoint
    click.echo(
        f"{checkpoint.parents[1]}: going on from step {step_of(start)}, before the learning rate was decayed towards "
        f"the end of a shorter run; steps {step_of(start) + 1} to {done} are trained again"
    )
    return start


def find_run(out: Path | None, resume: str | None) -> "tuple[Path | None, RunFolder | None]":
    """(checkpoint, its run) that `--resume [CKPT]` and `--out` name outright."""
    from xtts.trainer.checkpoint import find_checkpoint
    from xtts.trainer.run_folder import RunFolder

    if resume:
        checkpoint = find_checkpoint(Path(resume))
        return checkpoint, RunFolder.of_checkpoint(checkpoint)
    if resume == "" and out and newest(RunFolder(out)):
        return newest(RunFolder(out)), RunFolder(out)
    return None, None


def newest(folder: "RunFolder") -> Path | None:
    """The newest checkpoint of a run folder, if it has one."""
    from xtts.trainer.checkpoint import list_checkpoints

    return next(reversed(list_checkpoints(folder.checkpoints)), None)


def feature_differences(config: "Config", spec: "CacheSpec") -> list[tuple[str, object, object]]:
    """(section.field, as the cache was built, as configured) of every feature setting that differs."""
    from xtts.shared.config import feature_config, with_defaults

    stored = with_defaults(spec.features)
    return [
        (f"{section}.{field}", stored[section][field], wanted)
        for section, fields in feature_config(config).items()
        for field, wanted in fields.items()
        if stored[section][field] != wanted
    ]


def check_features(config: "Config", spec: "CacheSpec", cache: Path) -> None:
    """Refuse a cache that was built with other feature settings, naming the first difference."""
    for key, found, wanted in feature_differences(config, spec):
        built = json.dumps(found)
        raise LockstepError(
            str(cache), found=f"built with {key} = {built}", expected=json.dumps(wanted),
            fix="rebuild it with make features DATA=<its corpus> CONFIG=<this configuration>, "
            f"or train with --set {key}={built}",
        )  # fmt: skip


def check_files(config: "Config", cache: Path) -> None:
    """Look at the cache's files as `data.verify` says."""
    from xtts.shared.quick_check import full_check, quick_check

    if config.data.verify != "off":
        (full_check if config.data.verify == "full" else quick_check)(cache)


def run(plan: "RunPlan") -> None:
    """Import TensorFlow and train; a run that is already complete is left alone."""
    import os

    from rich.console import Console

    from xtts.trainer.checkpoint import read_meta
    from xtts.trainer.startup import tensorflow_import

    console = Console(width=None if os.isatty(1) else 200)
    folder = plan.folder.path
    total = plan.config.training.steps
    done = int(read_meta(plan.resume)["step"]) if plan.resume else 0
    if done >= total:
        console.print(
            f"{folder} is complete: step {done} of {total}. Train it further with: "
            f"xtts-train --resume {folder} --steps {done + total}", highlight=False, soft_wrap=True,
        )  # fmt: skip
        return
    console.print("starting TensorFlow", highlight=False)
    with tensorflow_import():
        from xtts.trainer.run import train

    if not train(plan, console):
        return
    console.print(
        f"checkpoints: {plan.folder.checkpoints}\n"
        f"loss curves: tensorboard --logdir {plan.folder.tensorboard}   every step: {plan.folder.metrics_file}\n"
        f"continue:    xtts-train --resume {folder} --steps N\n"
        f'hear it:     xtts-synth --ckpt {folder} "A sentence of your own." -o out.wav',
        highlight=False, soft_wrap=True,
    )  # fmt: skip


if __name__ == "__main__":
    main()
