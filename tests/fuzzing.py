"""Fuzzing: few examples, always the same, in `make test`; many, new every time, in `make test-long`."""

import os
import random
from dataclasses import dataclass

import pytest


def fresh_seed() -> int:
    """Another one each time, or that of LOCKSTEP_SEED; pytest shows it where the test fails."""
    chosen = int(os.environ.get("LOCKSTEP_SEED") or random.SystemRandom().randrange(2**32))
    print(f"LOCKSTEP_SEED={chosen}")
    return chosen


@dataclass(frozen=True)
class Fuzz:
    examples: int
    fresh: bool

    def seed(self) -> int:
        """0, or where fresh `fresh_seed`."""
        return fresh_seed() if self.fresh else 0


def fuzzed(few: int, many: int) -> pytest.MarkDecorator:
    """Twice a test with an argument `fuzz`: with few examples, and marked long with many."""
    long = pytest.param(Fuzz(many, fresh=True), marks=pytest.mark.long)
    return pytest.mark.parametrize("fuzz", [Fuzz(few, fresh=False), long], ids=["few", "many"])
