"""Times at which the vector field is evaluated from noise to mel, and the moves between; without TensorFlow."""

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import numpy as np

Solver = Literal["euler", "midpoint"]
_STAGES: dict[Solver, tuple[tuple[float, float, float], ...]] = {
    "euler": ((0.0, 1.0, 0.0),),
    "midpoint": ((0.0, 0.0, 0.5), (0.5, 1.0, 0.0)),
}
"""The evaluations of one step of a solver as shares of the step: time after its start, move, further move up to the
place of the next evaluation, which the solution itself does not make."""


def evaluations_per_step(solver: Solver) -> int:
    """Evaluations of the vector field in a step of a solver."""
    return len(_STAGES[solver])


def sampling_schedule(evaluations: int, solver: Solver) -> "np.ndarray":
    """The evaluations of the vector field in order, float32[N, 3]: time, move, further move; see `networks.solve`.

    evaluations: N, a multiple of those of one step of the solver.
    """
    import numpy as np  # not for the help of a command

    stages = _STAGES[solver]
    edges = np.linspace(0.0, 1.0, evaluations // len(stages) + 1)
    rows = [
        (start + offset * size, move * size, further * size)
        for start, size in zip(edges[:-1], np.diff(edges), strict=True)
        for offset, move, further in stages
    ]
    return np.array(rows, np.float32)
