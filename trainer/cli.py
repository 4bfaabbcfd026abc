"""`xtts-train`: checks everything before it imports TensorFlow."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from xtts.shared.config_flags import config_options
from xtts.shared.errors import report_errors

if TYPE_CHECKING:
    from rich.console import Console

    from xtts.trainer.run.run_plan import RunPlan


def _console() -> "Console":
    from rich.console import Console

    return Console(width=None if os.isatty(1) else 200)


def _finish(context: click.Context, _: click.Parameter, run: Path | None) -> None:
    """Export the voice of a run instead of training it."""
    if run is None:
        return
    with report_errors():
        from xtts.trainer.run.finish import finish_run

        finish_run(run, _console())
    context.exit()


@click.command(context_settings={"show_default": True})
@click.version_option(package_name="lockstep-tts")
@config_options
@click.option(
    "--cache", metavar="DIR|URL",
    help="Cache that xtts-precompute built: a folder or a URL.  [default: features, or the run's own]",
)
@click.option(
    "--out", type=click.Path(path_type=Path),
    help="Folder of the run: checkpoints, metrics, TensorBoard.  [default: runs/SIZE-CACHE]",
)
@click.option(
    "--resume", is_flag=False, flag_value="", metavar="[CKPT]",
    help="Run folder or checkpoint to continue; without a value, the folder of --out if it holds a run.",
)
@click.option(
    "--finish", type=click.Path(path_type=Path), metavar="RUN", callback=_finish, expose_value=False, is_eager=True,
    help="Stopped run: export its newest checkpoint into RUN/voice/, as after the last step, without training.",
)
@click.option(
    "--export-steps", is_flag=True,
    help="Write the steps and the order of the clips into RUN/steps/ without training: JAX trains from them where "
    "TensorFlow is not installed.",
)
@click.option(
    "--init-from", type=click.Path(path_type=Path), metavar="CKPT|nothing",
    help="Model whose weights start a new run at step 0: a run folder, a checkpoint or an exported folder.  "
    "[default: our voice, for tiny on less than 3 hours]",
)
@click.option(
    "--runtime", "training__runtime", type=click.Choice(["tensorflow", "jax"]),
    help="What runs the steps: TensorFlow, or JAX on its device (training.runtime).  [default: tensorflow]",
)
@click.option(
    "--steps", "training__steps", type=click.IntRange(min=1), metavar="N",
    help="Number of steps in the whole run (training.steps); --epochs takes precedence.",
)
@click.option(
    "--epochs", "training__epochs", type=click.IntRange(min=1), metavar="N",
    help="Number of passes over the corpus, instead of steps (training.epochs).",
)
def main(
    config: tuple[str, ...], assignments: tuple[str, ...], flags: Mapping[str, object], cache: str | None,
    out: Path | None, resume: str | None, init_from: Path | None, export_steps: bool,
) -> None:
    """Train a voice on a cache that xtts-precompute built. Stop it at any time; --resume continues."""
    with report_errors():
        from xtts.trainer.run.run_plan import make_plan

        plan = make_plan(config, assignments, flags, cache=cache, out=out, resume=resume, init_from=init_from)
        if export_steps:
            _export_steps(plan)
        else:
            run(plan)


def _export_steps(plan: "RunPlan") -> None:
    from xtts.trainer.system.tensorflow_import import tensorflow_import

    with tensorflow_import():
        from xtts.trainer.run.write_steps import export_steps

    console = _console()
    steps = export_steps(plan, console)
    size = sum(file.stat().st_size for file in steps.iterdir()) / 1e6
    console.print(
        f"{steps}: {size:.1f} MB. Copy {plan.folder.path} and the cache to the machine with JAX, and train with: "
        f"xtts-train --resume {plan.folder.path} --cache {plan.named_cache}", highlight=False, soft_wrap=True,
    )


def run(plan: "RunPlan", data: Path | None = None) -> None:
    """Import TensorFlow, train and export; a run that did both is left unchanged. data: as in `finish_run`.

    Without TensorFlow, a run with exported steps trains from them.
    """
    from xtts.trainer.system.tensorflow_import import has_tensorflow, tensorflow_import

    console = _console()
    folder = plan.folder.path
    total, done = plan.config.training.steps, plan.steps_done
    if plan.is_finished:
        console.print(
            f"{folder} is complete: step {done} of {total}. Train it further with: "
            f"xtts-train --resume {folder} --steps {done + total}", highlight=False, soft_wrap=True,
        )
        return
    if plan.resume and done < total and plan.folder.steps.is_dir() and not has_tensorflow():
        from xtts.trainer.run.train_steps import train_steps

        train_steps(plan, plan.resume, console)
        return
    console.print(f"starting TensorFlow{f', {plan.cluster.name}' if plan.cluster else ''}", highlight=False)
    with tensorflow_import():
        from xtts.trainer.run.trainer import train_to_voice

    if not train_to_voice(plan, console, data=data) or not plan.is_rank_0:
        return
    from xtts.trainer.export.products import product_of
    from xtts.trainer.stored.checkpoint import find_checkpoint, read_meta

    meta = read_meta(find_checkpoint(folder))
    last, best = meta["step"], meta["progress"]["best_validation"]["step"]
    spoken = f"voice:       step {last}, in {plan.folder.voice_folder}"
    if best not in (None, last):
        spoken += f"; the best validation was at step {best} (--ckpt {folder}/checkpoints/step-{best})"
    console.print(
        f"checkpoints: {plan.folder.checkpoints}\n{spoken}\n"
        f"to improve:  more recordings (it had {plan.spec.statistics.seconds / 60:,.0f} minutes)\n"
        f"loss curves: tensorboard --logdir {plan.folder.tensorboard}   every step: {plan.folder.metrics_file}\n"
        f"continue:    xtts-train --resume {folder} --steps N\n"
        f"{product_of(plan.config).usage(folder, plan.folder.voice_folder)}",
        highlight=False, soft_wrap=True,
    )


if __name__ == "__main__":
    main()
