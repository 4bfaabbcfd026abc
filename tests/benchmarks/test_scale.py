"""benchmarks/scale.py: what it simulates is what builds do, in a memory that is really limited."""

import importlib
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def scale(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("scale")


def test_plan_and_join_of_many_clips(scale):
    planned, joined = scale.simulate_plan(50_000, 32), scale.simulate_join(50_000)
    assert planned["shards"] > 100
    assert joined["changed"] == 500


@pytest.mark.skipif(sys.platform != "linux", reason="limits are Linux's")
def test_the_limit_ends_what_needs_more(scale, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(BENCHMARKS))
    assert scale.limited(scale.simulate_join, 1_000, memory_gib=2.0)["memory_gib_allowed"] == 2.0
    with pytest.raises(MemoryError):
        scale.limited(scale.simulate_join, 30_000_000, memory_gib=0.5)


def test_formulas(scale):
    options = scale.argparse.Namespace(
        rows=1_000_000, shard_mb=256, frames_per_second=40_000, memory_gib=4.0, driver_clips=[1, 2]
    )
    requests = scale.requests(options)
    first = requests["table"][0]
    assert requests["shards"] == round(1e6 * 566 * 160 / 0.93 / 2**28)
    assert first["GET and HEAD"] == 5_000_000
    assert first["dollars"] == pytest.approx(5_000 * 0.0004 + first["PUT and LIST"] / 1000 * 0.005, abs=0.01)
    assert scale.reading(options)["table"][-1]["MB/s"] == pytest.approx(8 * 40_000 * 160 / 0.93 / 1e6, rel=0.01)
    driver = {
        "command_microseconds": 8.0, "command_bytes": 64.0, "worker_cores_that_the_command_keeps_busy": 250,
        "bytes_of_the_worker_that_reads_the_list": 1024.0,
    }  # fmt: skip
    ends = {row["what ends"]: row["at"] for row in scale.limits(driver, options)["table"]}
    assert ends["the command needs 4 GiB (clips), at 64 bytes a clip"] == 2**26
    assert ends["the worker that reads the list needs 16 GiB (clips)"] == 2**24
