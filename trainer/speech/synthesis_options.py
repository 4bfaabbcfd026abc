"""Options of synthesis: their names, defaults, ranges and descriptions, for every interface."""

from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from xtts.shared.errors import LockstepError

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


class SynthesisOptions(BaseModel):
    """Options of a synthesis.

    Commands, requests over HTTP and Python programs get their options from these fields, and the same error.

    Raises:
        LockstepError: An option is unknown, its value cannot be used, or two do not go together.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )

    nfe: Annotated[int, Field(ge=1, le=1000)] = 4
    """Number of decoder evaluations for a mel: 10 are slower and a little closer to recordings. Even for midpoint."""
    solver: Solver = "midpoint"
    """ODE solver of the decoder: midpoint takes two evaluations per step, euler one."""
    temperature: Annotated[float, Field(ge=0.0, le=2.0)] = 0.5
    """Standard deviation of the noise: lower is flatter speech; at 0 all seeds sound the same."""
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0
    """Random seed of the noise."""
    speed: Annotated[float, Field(ge=0.25, le=4.0)] = 1.0
    """Speaking rate, as a factor: 2 speaks twice as fast."""
    loudness: Annotated[float, Field(ge=-40.0, le=-10.0)] | Literal["recorded"] = -20.0
    """Loudness of the speaker in LUFS, the same in all texts; `recorded` leaves it as in the recordings."""

    def __init__(self, /, **options: object) -> None:
        """Check every value; numbers may be numpy's or texts."""
        own = SynthesisOptions.model_fields
        plain = {name: as_number(value) if name in own else value for name, value in options.items()}
        try:
            super().__init__(**plain)
        except ValidationError as error:
            raise _refusal(error) from None
        if self.nfe % (evaluations := evaluations_per_step(self.solver)):
            raise LockstepError(
                "--nfe", found=f"{self.nfe} with solver {self.solver}", expected=f"a multiple of {evaluations}",
                fix="or use solver euler",
            )

    def replaced(self, **changes: object) -> Self:
        """Return a copy with other values, which are checked."""
        return type(self)(**{**self.model_dump(), **changes})

    @property
    def schedule(self) -> "np.ndarray":
        """The evaluations in order: float32[nfe, 3], see `sampling_schedule`."""
        return sampling_schedule(self.nfe, self.solver)


def as_number(value: object) -> object:
    """Return a number of numpy's or in a text as one of Python's, other values unchanged."""
    if hasattr(value, "item"):
        return value.item()
    if isinstance(value, str):
        for kind in (int, float):
            with suppress(ValueError):
                return kind(value)
    return value


def option_name(field: str) -> str:
    """The option of the command for a field."""
    return f"--{field.replace('_', '-')}"


def accepted(name: str) -> str:
    """Describe the values that an option accepts: for messages, help and documents."""
    schema = SynthesisOptions.model_json_schema()["properties"][name]
    return " or ".join(filter(None, map(_range, schema.get("anyOf", [schema]))))


def _range(schema: dict[str, Any]) -> str:
    """Describe one type of values; nothing for null."""
    if "minimum" not in schema:
        return " or ".join(schema.get("enum", [schema["const"]] if "const" in schema else []))
    kind = "a whole number, " if schema["type"] == "integer" else ""
    return f"{kind}{schema['minimum']:.10g} to {schema['maximum']:.10g}"


def _refusal(error: ValidationError) -> LockstepError:
    """Report the first wrong field as an option of the command; fields of requests have pydantic's message."""
    first = error.errors(include_url=False)[0]
    name = str(first["loc"][0])
    if name in SynthesisOptions.model_fields:
        return LockstepError(option_name(name), found=f"{first['input']!r:.40}", expected=accepted(name))
    unknown = first["type"] == "extra_forbidden"
    return LockstepError(option_name(name), found="unknown field" if unknown else str(first["msg"]))
