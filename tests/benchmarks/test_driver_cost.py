"""The command of a build holds no object a clip."""

from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.long
def test_a_clip_more_takes_few_bytes_in_the_command(tmp_path, monkeypatch):
    """A row object a clip took 1,800 bytes, an id alone takes 61 and its place in a list."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import driver_cost

    assert driver_cost.memory_slope(tmp_path, 20_000, 40_000) <= driver_cost.GATES["bytes"]


def test_a_broken_gate_is_said(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import driver_cost

    figures = {"microseconds": 10.04, "bytes": 80.1, "table": [{"clips": 1}]}
    assert driver_cost.cost_lines(figures)[:2] == [
        "10.0 microseconds a clip, at most 10: BROKEN", "80.1 bytes a clip, at most 80: BROKEN",
    ]  # fmt: skip
