"""The benchmark of the two engines runs, and compares the same shards."""

import json
from pathlib import Path

import pytest

pytest.importorskip("ray")
BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_a_corpus_is_built_by_local_processes_and_on_ray(tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import ray_overhead

    arguments = ["--clips", "12", "--rounds", "1", "--workers", "1", "--config", "tiny", "--work", str(tmp_path)]
    monkeypatch.setattr("sys.argv", ["ray_overhead.py", *arguments, "--out", str(tmp_path / "figures.json")])
    ray_overhead.main()
    figures = json.loads((tmp_path / "figures.json").read_text())
    seconds = {row["build on"]: row["seconds"] for row in figures["table"]}
    assert list(seconds) == ["local processes", "Ray", "Ray, one task"]
    assert figures["times_local"] == pytest.approx(seconds["Ray"] / seconds["local processes"], rel=0.02)
    assert "12 clips, 1 workers, median of 1 rounds" in capsys.readouterr().out
