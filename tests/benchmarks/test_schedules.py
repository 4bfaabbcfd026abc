"""benchmarks/schedules.py: an epoch is every clip once, and the same frames are trained on every GPU."""

import importlib

import pytest


@pytest.fixture
def schedules(monkeypatch, request):
    monkeypatch.syspath_prepend(request.config.rootpath / "benchmarks")
    return importlib.import_module("schedules")


def test_every_gpu_trains_the_same_frames(schedules, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["schedules.py", "--sizes", "normal", "--frames-per-second", "43000"])
    schedules.main()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("13,100 clips, ")
    rows = [dict(zip(cells(lines[2]), cells(line), strict=True)) for line in lines[4:]]
    assert [row["GPU"] for row in rows] == ["-", "a100", "h200", "rtx3060", "rtx4090"]
    assert {row["epochs"] for row in rows} == {"500"}
    for row in rows:
        steps, clips = int(row["steps"].replace(",", "")), float(row["clips a step"])
        assert steps * clips / 13_100 == pytest.approx(500, rel=0.01)
        assert float(row["hours"]) == pytest.approx(24.0, abs=0.1)  # as the column beside says


def cells(line):
    return [cell.strip() for cell in line.strip("|").split("|")]
