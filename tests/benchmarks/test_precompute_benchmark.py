"""The benchmark of stage 1 runs, and says what it measured; how fast is for the machine that it is meant for."""

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "precompute.py"


def test_the_benchmark_measures_and_reports(tone_corpus, tmp_path):
    data = tone_corpus(tmp_path / "corpus", 12)
    arguments = ["--data", data, "--work", tmp_path / "work", "--out", tmp_path / "figures.json"]
    arguments += ["--rounds", "2", "--workers", "2", "--only", "librosa"]
    done = subprocess.run([sys.executable, SCRIPT, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert (figures["clips"], figures["workers"], figures["rounds"]) == (12, 2, 2)
    assert figures["cores"] >= 1
    assert figures["versions"]["librosa"]
    assert list(figures["contestants"]) == ["lockstep", "librosa", "floor"]
    for row in figures["contestants"].values():
        assert len(row["seconds_by_round"]) == 2
        assert row["seconds"] > 0
        assert row["clips_per_second"] > 0
        assert row["cpu_seconds"] > 0
    assert figures["contestants"]["lockstep"]["times_lockstep"] == 1
    for ratios in (figures["by_wall"], figures["by_cpu"]):
        assert ratios["fastest_other"] == "librosa"
        assert ratios["times_fastest_other"] > 0
        assert ratios["share_of_floor"] > 0
    table = [line for line in done.stdout.splitlines() if line.startswith("|")]
    assert [line.split("|")[1].strip() for line in table[2:]] == ["lockstep", "librosa", "floor"]
    assert not (tmp_path / "work" / "out").exists()


def test_the_floor_writes_as_much_as_the_cache(tone_corpus, tmp_path):
    data = tone_corpus(tmp_path / "corpus", 12)
    arguments = ["--data", data, "--work", tmp_path / "work", "--out", tmp_path / "figures.json", "--rounds", "1"]
    command = [sys.executable, SCRIPT, *map(str, arguments), "--only"]
    done = subprocess.run([*command, "none"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "figures.json").read_text())["contestants"]
    assert rows["floor"]["mib_written"] > 0
    assert abs(rows["floor"]["mib_written"] / rows["lockstep"]["mib_written"] - 1) < 0.3
