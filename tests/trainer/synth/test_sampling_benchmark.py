"""The comparison of solvers measures what `xtts-synth evaluate` measures."""

import argparse
from pathlib import Path

import pytest

from xtts.trainer.synth import evaluate_checkpoint
from xtts.trainer.synth.voice_source import open_source


@pytest.mark.long
def test_the_first_row_has_the_relative_mcd_of_evaluate_and_the_second_no_solver_error(monkeypatch, finished_run):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[3] / "benchmarks"))
    import sampling

    run = finished_run[0]
    monkeypatch.setattr(sampling, "EXACT", sampling.SynthesisOptions(steps=20, solver="midpoint", sway=0.0))
    options = argparse.Namespace(
        run=run, sentences=2, steps=[10], sways=[0.0, -1.0], guidances=[1.0], engine="tensorflow"
    )
    rows = sampling.measure(open_source(run), options)["table"]
    assert len(rows) == 7
    figures = evaluate_checkpoint(run, limit=2, steps=10, solver="euler", sway=0.0)
    assert rows[0]["relative_MCD"] == pytest.approx(figures["synthesised"].relative_mcd, abs=1e-4)
    assert rows[0]["difference"] == rows[1]["solver_error,_dB"] == 0.0
