"""The benchmark of the step runs, and says what it measured; how fast is for the machine that it is meant for."""

import json
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_a_step_and_its_pieces_are_timed(tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import step_cost

    monkeypatch.setitem(step_cost.QUICK, "tokens", 16)
    monkeypatch.setitem(step_cost.QUICK, "frames", 48)
    settings = ("text_width=16", "text_blocks=1", "prenet_layers=1", "duration_layers=1", "decoder_width=16",
                "decoder_blocks=1", "decoder_levels=[]")  # fmt: skip
    arguments = ["--quick", "--set", *(f"model.{setting}" for setting in settings)]
    monkeypatch.setattr("sys.argv", ["step_cost.py", *arguments, "--out", str(tmp_path / "figures.json")])
    step_cost.main()
    figures = json.loads((tmp_path / "figures.json").read_text())
    tiny = figures["table"][0]
    assert (figures["batch_size"], tiny["size"], len(figures["table"])) == (2, "tiny", 1)
    pieces = [tiny[f"{name}_ms"] for name in ("step", "losses_and_gradients", "alignment_search", "optimizer")]
    assert all(0 < piece < 1000 * tiny["compile_seconds"] for piece in pieces)
    assert tiny["share_of_alignment_search"] == pytest.approx(pieces[2] / pieces[0], rel=0.01, abs=1e-3)
    assert tiny["share_of_optimizer"] == pytest.approx(pieces[3] / pieces[0], rel=0.01, abs=1e-3)
    assert tiny["useful_frames_per_second"] == pytest.approx(1000 * (48 + int(0.85 * 48)) / pieces[0], rel=0.01)
    table = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    assert table[2].startswith(f"| tiny | {tiny['parameters']:,} |")
    assert len(table) == 3
