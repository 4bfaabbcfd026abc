"""A process among those that train together: what all of them must share, and what only the chief does."""

import hashlib
import json
from collections.abc import Mapping
from importlib import metadata
from typing import Any

from rich.console import Console

from xtts.shared.config import TrainingConfig
from xtts.shared.errors import LockstepError, build_command
from xtts.trainer.engine.device_loop import DeviceLoop
from xtts.trainer.engine.devices import Devices
from xtts.trainer.engine.train_state import TrainState
from xtts.trainer.engine.training_loop import TrainingLoop
from xtts.trainer.reporting.reporter import Reporter
from xtts.trainer.run.run_plan import RunPlan


class Team:
    """The devices of a run, as its trainer sees them; a single device is a team of one."""

    def __init__(self, plan: RunPlan, devices: Devices | None) -> None:
        """Raise `LockstepError` in every process if one was started with other settings or another cache."""
        self._plan, self._devices = plan, devices
        if devices is None:
            return
        if not plan.spec.fixed_length:
            raise LockstepError(
                str(plan.cache), found=f"unpadded clips, which {devices.count} devices cannot share",
                expected="shapes.pad_to_fixed_length: true",
                fix=f"{build_command(plan.cache)}, or train with --set training.strategy=single",
            )  # fmt: skip
        facts = {"version of lockstep-tts": metadata.version("lockstep-tts"), **_leaves(plan.config.model_dump())}
        facts |= {"cache": plan.spec.identity, "checkpoint": f"step {plan.steps_done}"}
        devices.check_same(facts, fix="start every worker with the same settings, cache and checkpoint")

    @property
    def chief(self) -> bool:
        """True for the process that owns the run folder, reports, speaks samples and saves."""
        return self._devices is None or self._devices.chief

    @property
    def several(self) -> bool:
        """True where other processes train along."""
        return self._devices is not None and self._devices.cluster is not None

    @property
    def described(self) -> str:
        """The devices, to follow the name of one; empty for a single one."""
        return f"; {self._devices.described}" if self._devices else ""

    def check_state(self, state: TrainState) -> None:
        """Raise `LockstepError` in every process if one restored another state, or made other weights."""
        if self._devices is None or not self.several:
            return
        digest = hashlib.sha256()
        for name, array in state.arrays().items():
            digest.update(name.encode() + array.tobytes())
        fix = "give every worker the same checkpoint: a run folder that all of them see, or a copy of it"
        self._devices.check_same({"restored state": digest.hexdigest()}, fix=fix)

    def reporter(self, console: Console, *, buckets: int) -> Reporter:
        """The reporter of this process; the chief's opens the run folder. buckets: those known before the first."""
        if not self.chief:
            return SilentReporter()
        training = self._plan.config.training
        return Reporter(
            self._plan.folder, console, total_steps=training.steps, log_every=training.log_every, buckets=buckets
        )

    def sampling(self, training: TrainingConfig) -> TrainingConfig:
        """The settings for samples, which only the chief speaks."""
        return training if self.chief else training.model_copy(update={"samples_every": None})

    def chief_says(self, flag: bool) -> bool:
        """The chief's flag, in every worker; it waits until all have asked."""
        return self._devices.chief_says(flag) if self._devices else flag

    def stopped(self, loop: TrainingLoop) -> bool:
        """True if a signal to any process ended the loop's last call."""
        return isinstance(loop, DeviceLoop) and loop.stopped


def _leaves(settings: Mapping[str, Any], section: str = "") -> dict[str, str]:
    """Value by name, as in `training.batch_size`."""
    leaves: dict[str, str] = {}
    for key, value in settings.items():
        name = f"{section}{key}"
        leaves |= _leaves(value, f"{name}.") if isinstance(value, dict) else {name: json.dumps(value)}
    return leaves


class SilentReporter(Reporter):
    """The reporter of the other processes: the chief has the same numbers and reports them."""

    def __init__(self) -> None:
        pass

    def end_at(self, step: int) -> None:
        """Nothing."""

    def steps(self, rows: object) -> None:
        """Nothing."""

    def validation(self, step: int, losses: dict[str, float], total: float, *, skipped: int) -> None:
        """Nothing."""

    def say(self, line: str) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""
