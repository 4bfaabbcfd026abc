"""The plan of a run, resolved from the command line and checked before TensorFlow is imported."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import click

from xtts.shared.cache.cache_spec import load_spec
from xtts.shared.cache.quick_check import quick_check
from xtts.shared.config import Config, TrainingConfig
from xtts.shared.errors import LockstepError
from xtts.trainer.loop.rendezvous import Cluster, find_cluster
from xtts.trainer.run.setup import Setup, prepare
from xtts.trainer.stored.checkpoint import (
    RUNS,
    before_decay,
    check_resumable,
    check_weights,
    find_checkpoint,
    identity_of,
    list_checkpoints,
    read_meta,
    step_of,
)
from xtts.trainer.stored.run_folder import RunFolder
from xtts.trainer.stored.stored_model import open_model

NOTHING = Path("nothing")
"""The start of a run from initial weights, for `--init-from`."""


@dataclass(frozen=True, kw_only=True)
class RunPlan(Setup):
    """A checked request to train."""

    folder: RunFolder
    resume: Path | None
    """Checkpoint to continue."""
    init_from: Path | None
    """Checkpoint or exported folder whose averaged weights began the run, also if the run is resumed."""
    asked_steps: int | None = None
    """Requested steps; patience may end the run earlier."""

    @contextmanager
    def held(self) -> Iterator[None]:
        """The context that locks the cache's files and, in rank 0, the run folder."""
        folder = self.folder.exclusive() if self.is_rank_0 else nullcontext()
        with self.lock, folder:
            yield

    @property
    def steps_done(self) -> int:
        """Updates in the checkpoint that the run continues; 0 for a new run."""
        return int(read_meta(self.resume)["step"]) if self.resume else 0

    @property
    def is_finished(self) -> bool:
        """Whether the last step is trained, and its voice exported: what a run leaves."""
        return self.steps_done >= self.config.training.steps and open_model(self.folder.path).is_exported(
            self.folder.voice_folder
        )

    @property
    def cluster(self) -> Cluster | None:
        """The workers that train together; None where this process trains alone."""
        return find_cluster(self.config.training.strategy)

    @property
    def is_rank_0(self) -> bool:
        """Whether this process owns the run folder, reports, speaks samples and saves."""
        return self.cluster is None or self.cluster.index == 0

    @property
    def facts(self) -> dict[str, str]:
        """Facts that all workers must share, by name: every setting (`training.batch_size`), cache and checkpoint."""
        origin = {"cache": self.spec.identity, "checkpoint": f"step {self.steps_done}"}
        return _leaves(self.config.model_dump()) | origin


def _leaves(settings: Mapping[str, object], section: str = "") -> dict[str, str]:
    leaves: dict[str, str] = {}
    for key, value in settings.items():
        name = f"{section}{key}"
        leaves |= _leaves(value, f"{name}.") if isinstance(value, dict) else {name: json.dumps(value)}
    return leaves


def make_plan(
    config: Sequence[str], assignments: Sequence[str], flags: Mapping[str, object], *,
    cache: str | Path | None, out: Path | None, resume: str | None, init_from: Path | None,
    say: Callable[[str], object] = click.echo,
) -> RunPlan:
    """Resolve and check everything that does not need TensorFlow.

    init_from: the model to start from, `NOTHING`, or None for the default of the kind of model; say: receives lines
    about the decisions.
    """
    checkpoint, source = find_run(out, resume)
    setup = prepare(config, assignments, flags, cache=cache, run=source)
    name = f"{setup.kind.model_name(setup.config)}-{setup.spec.identity[:8]}"
    folder = RunFolder(out) if out else source or RunFolder(RUNS / name)
    named = checkpoint is not None and Path(str(resume)).resolve() == checkpoint.resolve()
    if resume == "":
        checkpoint = newest(folder)
    elif newest(folder) and not (source and folder.path.resolve() == source.path.resolve()):
        raise LockstepError(
            str(folder.path), found="already holds a run", fix="continue it with --resume, or give another --out"
        )
    find_cluster(setup.config.training.strategy)  # a malformed one is refused here
    if checkpoint:
        init_from = RunFolder.of_checkpoint(checkpoint).init_from()
    elif init_from is None:
        init_from = setup.default_start(say)
    elif init_from == NOTHING:
        init_from = None
    setup = setup.suited(from_a_model=init_from is not None, say=say)
    identity, asked = identity_of(setup.config, setup.spec), setup.config.training.steps
    if checkpoint:
        check_resumable(checkpoint, identity)
        resolved, asked = _as_it_ends(checkpoint, setup.config)
        setup = replace(setup, config=resolved)
        checkpoint = checkpoint if named else longer_run(checkpoint, resolved.training, say)
    elif init_from:
        start = open_model(init_from)
        init_from = start.checkpoint
        start.check_kind(setup.kind.name, fix="give --init-from another model")
        check_weights(init_from, start.settings(), identity)
        setup.kind.check_start(start, setup.spec)
    quick_check(setup.cache, setup.spec)
    return RunPlan(**vars(setup), folder=folder, resume=checkpoint, init_from=init_from, asked_steps=asked)


def _as_it_ends(checkpoint: Path, config: Config) -> tuple[Config, int]:
    """(the configuration with the steps at which patience ends the run, requested steps).

    The configuration is unchanged if more steps are requested than before.
    """
    progress, steps = read_meta(checkpoint)["progress"], config.training.steps
    if not progress["schedule"]["steps"] < steps <= progress["asked_steps"]:
        return config, steps
    training = config.training.model_copy(update={"steps": progress["schedule"]["steps"], "epochs": None})
    return config.model_copy(update={"training": training}), progress["asked_steps"]


def longer_run(checkpoint: Path, training: TrainingConfig, say: Callable[[str], object] = click.echo) -> Path:
    """The checkpoint from which a run with more steps continues: before its learning rate decayed."""
    start, done = before_decay(checkpoint, training), step_of(checkpoint)
    if done >= training.steps or start == checkpoint:
        return checkpoint
    if start is None:
        say(
            f"{checkpoint}: made with another learning-rate schedule, and no pre-decay checkpoint is left: "
            "the learning rate will jump"
        )
        return checkpoint
    say(
        f"{checkpoint.parents[1]}: continuing from step {step_of(start)}, before the learning rate decayed; "
        f"steps {step_of(start) + 1} to {done} are trained again"
    )
    return start


def find_run(out: Path | None, resume: str | None) -> tuple[Path | None, RunFolder | None]:
    """(checkpoint, its run) named by `--resume [CKPT]` and `--out`."""
    if resume:
        checkpoint = find_checkpoint(Path(resume))
        return checkpoint, RunFolder.of_checkpoint(checkpoint)
    if resume == "" and out and newest(RunFolder(out)):
        return newest(RunFolder(out)), RunFolder(out)
    return None, None


def newest(folder: RunFolder) -> Path | None:
    """The newest checkpoint of a run folder, or None."""
    return next(reversed(list_checkpoints(folder.checkpoints)), None)


def set_aside_stale(out: Path, cache: Path, say: Callable[[str], object]) -> None:
    """Move the run in `out` aside if its cache has changed, so that another begins there; its voice stays."""
    run = RunFolder(out)
    if run.cache_identity() in (None, load_spec(cache).identity):
        return
    with run.exclusive():
        moved = run.set_aside()
    say(f"{out}: the corpus has changed, so that a new run begins; the earlier one is in {moved}")
