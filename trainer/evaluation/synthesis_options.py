"""Options of synthesis."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class SynthesisOptions:
    """Settings of one synthesis; only `steps` is part of the compiled program."""

    steps: int = 10
    """Euler steps from noise to mel."""
    temperature: float = 0.667
    """Standard deviation of the noise; 0 gives the same speech for every seed."""
    speed: float = 1.0
    """2.0 speaks twice as fast."""
    seed: int = 0
    duration_noise: float = 0.0
    """Standard deviation of the noise that durations are drawn from; 0 speaks with their means."""
    seconds: float | None = None
    """Length of the whole text, its pauses included; None: as it comes."""
