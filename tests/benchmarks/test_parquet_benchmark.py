"""The benchmark of Parquet corpora runs, and compares the same shards."""

import json
from pathlib import Path

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_the_same_clips_are_built_from_files_and_from_parquet(tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import parquet_corpus

    arguments = ["--clips", "12", "--rounds", "1", "--workers", "1", "--large-bytes", "300000"]
    monkeypatch.setattr(
        "sys.argv",
        ["parquet_corpus.py", *arguments, "--work", str(tmp_path / "work"), "--out", str(tmp_path / "figures.json")],
    )
    parquet_corpus.main()
    figures = json.loads((tmp_path / "figures.json").read_text())
    files, rows, large = figures["table"]
    assert files["clips"] == rows["clips"] == 12 > large["clips"] > 0
    assert all(row["seconds"] > 0 and row["memory at most, MiB"] > 50 for row in figures["table"])
    assert figures["times_files"] > 0
    page = capsys.readouterr().out
    assert f"| row groups of 100 clips | 12 | {rows['seconds']:.4g} |" in page
