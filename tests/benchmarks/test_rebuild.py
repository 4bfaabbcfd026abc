"""The benchmark of a whole corpus runs, and says what the commands did."""

import json
from pathlib import Path

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_a_corpus_is_built_again_and_again(tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import rebuild

    arguments = ["--clips", "12", "--rounds", "1", "--config", "tiny", "--work", str(tmp_path / "work")]
    monkeypatch.setattr("sys.argv", ["rebuild.py", *arguments, "--out", str(tmp_path / "figures.json")])
    rebuild.main()
    figures = json.loads((tmp_path / "figures.json").read_text())
    fresh, again, changed = figures["told"].values()
    assert fresh["written"] > 0 == fresh["kept"]
    assert again == fresh | {"written": 0, "kept": fresh["written"], "mib": again["mib"]}
    assert (changed["written"], changed["kept"]) == (1, fresh["written"] - 1)
    assert 0.5 < fresh["fill"] == changed["fill"] <= 1
    assert list(figures["seconds"]) == [*figures["told"], "verify"]
    assert all(value > 0 for value in figures["seconds"].values())
    page = capsys.readouterr().out
    assert f"| one recording changed | {figures['seconds'][rebuild.CHANGED]:.4g} | 1 | {changed['kept']} |" in page
