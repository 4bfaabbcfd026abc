"""Options of synthesis."""

import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

from xtts.shared.errors import LockstepError
from xtts.trainer.evaluation.synthesis_ranges import NUMBERS, WHOLE_NUMBERS
from xtts.trainer.model.sampling_schedule import SOLVERS, Solver, evaluations_per_step, sampling_schedule


@dataclass(frozen=True, kw_only=True)
class SynthesisOptions:
    """Settings of one synthesis; only `steps` is part of the compiled program.

    Raises:
        LockstepError: A value cannot be used, or solver and steps not together.
    """

    steps: int = 4
    """Evaluations of the vector field from noise to mel (NFE): one for a step of euler, two of midpoint."""
    solver: Solver = "midpoint"
    """Of the differential equation from noise to mel."""
    temperature: float = 0.8
    """Standard deviation of the noise; 0 gives the same speech for every seed."""
    speed: float = 1.0
    """2.0 speaks twice as fast."""
    seed: int = 0
    seconds: float | None = None
    """Length of the whole text, its pauses included; None: as it comes."""

    def __post_init__(self) -> None:
        """Check every value."""
        if self.solver not in SOLVERS:
            raise LockstepError("--solver", found=repr(self.solver), expected=" or ".join(SOLVERS))
        values: dict[str, Any] = vars(self)  # of any type: Python programs give them, too
        together, steps = evaluations_per_step(self.solver), values["steps"]
        if isinstance(steps, Integral) and (steps < 1 or steps % together):
            raise LockstepError(
                "--steps", found=f"{steps} with --solver {self.solver}",
                expected=f"a multiple of {together}, which counts evaluations", fix="or use --solver euler",
            )  # fmt: skip
        for name, (least, most) in (WHOLE_NUMBERS | NUMBERS).items():
            value, whole = values[name], name in WHOLE_NUMBERS
            if value is None and name == "seconds":
                continue
            number: Any = value if isinstance(value, Integral if whole else Real) else math.nan
            if not least <= number <= most:
                expected = f"{'a whole number, ' if whole else ''}{least:.10g} to {most:.10g}"
                raise LockstepError("--" + name.replace("_", "-"), found=f"{value!r:.40}", expected=expected)

    @property
    def schedule(self) -> np.ndarray:
        """The evaluations in order: float32[steps, 3], see `sampling_schedule`."""
        return sampling_schedule(self.steps, self.solver)
