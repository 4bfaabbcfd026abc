"""The benchmark of the step runs, and says what it measured; how fast is for the machine that it is meant for."""

import json
from pathlib import Path

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_a_step_and_its_pieces_are_timed(tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import step_cost

    monkeypatch.setitem(step_cost.QUICK, "tokens", 16)
    monkeypatch.setitem(step_cost.QUICK, "frames", 48)
    small = ["text_width=16", "text_blocks=1", "prenet_layers=1", "decoder_width=16", "decoder_blocks=1"]
    arguments = ["--quick", "--set", *(f"model.{setting}" for setting in small)]
    monkeypatch.setattr("sys.argv", ["step_cost.py", *arguments, "--out", str(tmp_path / "figures.json")])
    step_cost.main()
    figures = json.loads((tmp_path / "figures.json").read_text())
    tiny = figures["sizes"]["tiny"]
    assert figures["clips"] == 2
    assert list(tiny["seconds"]) == ["step", "losses and gradients", "alignment search", "optimizer"]
    assert all(0 < tiny["seconds"][name] < tiny["compile_seconds"][name] for name in tiny["seconds"])
    assert tiny["useful_frames"] == 48 + int(0.85 * 48)
    assert 0 < tiny["share_of_alignment_search"] < 1
    table = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    assert table[2].startswith(f"| tiny | {tiny['parameters']:,} |")
    assert len(table) == 3
