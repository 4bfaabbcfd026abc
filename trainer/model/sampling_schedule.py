"""When the vector field is evaluated from noise to mel, and how far each evaluation moves; without TensorFlow."""

import math
from typing import Literal, get_args

import numpy as np

Solver = Literal["euler", "midpoint", "heun"]
SOLVERS: tuple[Solver, ...] = get_args(Solver)
LEAST_SWAY, MOST_SWAY = -1.0, 2.0 / (math.pi - 2.0)
"""Outside them warped times would not be in order."""
_STAGES: dict[Solver, tuple[tuple[float, float, float], ...]] = {
    "euler": ((0.0, 1.0, 0.0),),
    "midpoint": ((0.0, 0.0, 0.5), (0.5, 1.0, 0.0)),
    "heun": ((0.0, 0.5, 0.5), (1.0, 0.5, 0.0)),
}
"""The evaluations of one step of a solver as shares of the step: time after its start, move, further move up to the
place of the next evaluation, which the solution itself does not make."""


def evaluations_per_step(solver: Solver) -> int:
    """How often a step of a solver evaluates the vector field."""
    return len(_STAGES[solver])


def warp_times(times: np.ndarray, sway: float) -> np.ndarray:
    """Sway sampling of F5-TTS (arXiv 2410.06885, section 3.3): times in 0..1, moved towards 0 by a negative `sway`.

    times: float[N]; sway: `LEAST_SWAY` to `MOST_SWAY`, 0 changes nothing. 0 and 1 stay.
    """
    warped: np.ndarray = times + sway * (np.cos(0.5 * math.pi * times) - 1.0 + times)
    return warped


def sampling_schedule(evaluations: int, solver: Solver, sway: float) -> np.ndarray:
    """The evaluations of the vector field in order, float32[N, 3]: time, move, further move; see `sampling.solve`.

    evaluations: N, a multiple of those of one step of the solver.
    """
    stages = _STAGES[solver]
    edges = warp_times(np.linspace(0.0, 1.0, evaluations // len(stages) + 1), sway)
    rows = [
        (start + offset * size, move * size, further * size)
        for start, size in zip(edges[:-1], np.diff(edges), strict=True)
        for offset, move, further in stages
    ]
    return np.array(rows, np.float32)
