"""What the numbers of a synthesis may be, ends included: for commands, requests and Python programs."""

WHOLE_NUMBERS: dict[str, tuple[int, int]] = {"steps": (1, 1000), "seed": (0, 2**31 - 1)}
NUMBERS: dict[str, tuple[float, float]] = {
    "temperature": (0.0, 2.0),
    "speed": (0.25, 4.0),
    "seconds": (0.01, 3600.0),
}
"""By fields of `SynthesisOptions`."""
