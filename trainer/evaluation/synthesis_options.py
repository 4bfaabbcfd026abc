"""Options of synthesis."""

from dataclasses import dataclass

import numpy as np

from xtts.shared.errors import LockstepError
from xtts.trainer.model.sampling_schedule import (
    LEAST_SWAY,
    MOST_SWAY,
    SOLVERS,
    Solver,
    evaluations_per_step,
    sampling_schedule,
)

MOST_GUIDANCE = 20.0


@dataclass(frozen=True, kw_only=True)
class SynthesisOptions:
    """Settings of one synthesis; only `steps`, and whether there is guidance, are part of the compiled program.

    Raises:
        LockstepError: Solver, steps, sway or guidance cannot be used, or not together.
    """

    steps: int = 4
    """Evaluations of the vector field from noise to mel (NFE): one for a step of euler, two of midpoint or heun."""
    solver: Solver = "midpoint"
    """Of the differential equation from noise to mel."""
    sway: float = 0.0
    """Strength of the warped times, see `warp_times`: below 0 for more steps near the noise, 0 for equal ones."""
    guidance: float = 0.0
    """Strength of classifier-free guidance by speaker, voice and language; above 0 an evaluation costs double."""
    temperature: float = 0.667
    """Standard deviation of the noise; 0 gives the same speech for every seed."""
    speed: float = 1.0
    """2.0 speaks twice as fast."""
    seed: int = 0
    duration_noise: float = 0.0
    """Standard deviation of the noise that durations are drawn from; 0 speaks with their means."""
    seconds: float | None = None
    """Length of the whole text, its pauses included; None: as it comes."""

    def __post_init__(self) -> None:
        """Check what the solver needs."""
        if self.solver not in SOLVERS:
            raise LockstepError("--solver", found=repr(self.solver), expected=" or ".join(SOLVERS))
        together = evaluations_per_step(self.solver)
        if self.steps < 1 or self.steps % together:
            raise LockstepError(
                "--steps", found=f"{self.steps} with --solver {self.solver}",
                expected=f"a multiple of {together}, which counts evaluations", fix="or use --solver euler",
            )  # fmt: skip
        if not LEAST_SWAY <= self.sway <= MOST_SWAY:
            raise LockstepError("--sway", found=f"{self.sway}", expected=f"{LEAST_SWAY:g} to {MOST_SWAY:.2f}")
        if not 0.0 <= self.guidance <= MOST_GUIDANCE:
            raise LockstepError("--guidance", found=f"{self.guidance}", expected=f"0 to {MOST_GUIDANCE:g}")

    @property
    def schedule(self) -> np.ndarray:
        """The evaluations in order: float32[steps, 3], see `sampling_schedule`."""
        return sampling_schedule(self.steps, self.solver, self.sway)

    @property
    def guided(self) -> bool:
        """Whether the null condition is evaluated, too."""
        return self.guidance > 0.0
