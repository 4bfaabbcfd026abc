"""The comparison of solvers measures what `xtts-synth evaluate` measures."""

import argparse
from pathlib import Path

import pytest

from xtts.trainer.synth import evaluate_checkpoint
from xtts.trainer.synth.voice_source import open_source


@pytest.mark.long
def test_rows_have_the_figures_of_evaluate_and_the_exact_solution_no_solver_error(monkeypatch, finished_run):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[3] / "benchmarks"))
    import sampling

    run = finished_run[0]
    monkeypatch.setattr(sampling, "EXACT_STEPS", 20)
    options = argparse.Namespace(
        run=run, sentences=2, nfe=[10], solvers=["euler"], temperatures=[0.0], engine="tensorflow"
    )
    # Without noise: XLA, which the benchmark times, draws other numbers than the graph.
    exact, euler = sampling.measure(open_source(run), options)["table"]
    figures = evaluate_checkpoint(run, limit=2, nfe=10, solver="euler", temperature=0.0)["synthesised"]
    assert euler["relative_mcd"] == pytest.approx(figures.relative_mcd, abs=1e-4)
    assert euler["frechet_distance"] == pytest.approx(figures.frechet_distance, abs=1e-3)
    assert exact["solver_error,_dB"] == 0.0 < euler["solver_error,_dB"]
