"""The benchmark of segments runs, and compares the same shards."""

import json
from pathlib import Path

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_the_same_clips_are_built_from_files_and_from_segments(tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import segments

    arguments = ["--clips", "12", "--hours", "0.02", "--rounds", "1", "--workers", "1"]
    monkeypatch.setattr(
        "sys.argv", ["segments.py", *arguments, "--work", str(tmp_path), "--out", str(tmp_path / "figures.json")]
    )
    segments.main()
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert [row["clips as"] for row in figures["table"]] == [
        "files", "segments of one wav file", "segments of one flac file"
    ]  # fmt: skip
    assert set(figures["times_files"]) == {row["clips as"] for row in figures["table"][1:]}
    assert "1 processes, median of 1 rounds" in capsys.readouterr().out
