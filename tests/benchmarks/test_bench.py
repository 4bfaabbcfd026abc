"""`make bench`: one table from all benchmarks, the pictures, and a README that says what was measured."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import bench

    return bench


@pytest.fixture
def figures():
    return json.loads((ROOT / "benchmarks" / "results.json").read_text(encoding="utf-8"))


def test_the_readme_says_what_the_benchmarks_measured(bench, figures):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert readme.count(bench.BEGIN) == readme.count(bench.END) == 1
    assert bench.with_section(readme, figures) == readme
    assert not figures["quick"]


def test_the_table_gives_each_ratio_from_its_own_figures(bench, figures):
    rows = {row["what"]: row for row in bench.summarise(figures)}
    librosa = figures["precompute"]["contestants"]["librosa"]
    ours = figures["precompute"]["contestants"]["lockstep"]
    row = rows["features: the whole cache against librosa alone"]
    assert row["ratio"] == f"{librosa['seconds'] / ours['seconds']:.2f}x"
    slow, fast = figures["training"]["sections"]["a"]["table"][:2]
    (name,) = [what for what in rows if what.startswith("step: locked against")]
    assert rows[name]["ratio"] == f"{slow['mean_seconds'] / fast['mean_seconds']:.0f}x"
    assert f"{slow['batches']} batches" in name
    for benchmark, count in (("precompute", 2), ("training", 6), ("step_cost", 1)):
        only = {key: value for key, value in figures.items() if key in (benchmark, "machine", "quick")}
        assert len(bench.summarise(only)) >= count


def test_the_pictures_are_drawn_from_the_figures(bench, figures, tmp_path):
    bench.draw(figures, tmp_path)
    pictures = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    assert set(pictures) == {"steps.svg", "fill.svg", "throughput.svg"}
    assert re.search(r">93\.0%<", pictures["fill.svg"])  # eight shapes on ljspeech_lengths.csv
    ours = figures["precompute"]["contestants"]["lockstep"]["clips_per_second"]
    assert f">{ours:,.0f}<" in pictures["throughput.svg"]
    for name, picture in pictures.items():
        assert len(picture) < 150_000, name


def test_only_one_benchmark_is_run_and_told(bench, monkeypatch, tmp_path, capsys):
    out = tmp_path / "figures.json"
    arguments = ["--quick", "--only", "step_cost", "--out", str(out)]
    monkeypatch.setattr("sys.argv", ["bench.py", *arguments])
    row = {"size": "tiny", "step_ms": 500.0, "useful_frames_per_second": 2000,
           "share_of_alignment_search": 0.031, "share_of_optimizer": 0.2}  # fmt: skip
    found = {"table": [row]}

    def run(command, **_):
        assert command[1].endswith("step_cost.py")
        assert command[-1] == "--quick"
        Path(command[3]).write_text(json.dumps(found))
        return type("Done", (), {"returncode": 0, "stdout": "its own page\n"})

    monkeypatch.setattr(bench.subprocess, "run", run)
    bench.main()
    assert "| step of tiny: shares of alignment search and optimizer | 3.1% and 20.0% |" in capsys.readouterr().out
    assert "its own page" in out.with_suffix(".md").read_text()
    assert json.loads(out.read_text())["step_cost"] == found
