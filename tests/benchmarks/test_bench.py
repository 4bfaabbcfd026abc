"""`make bench`: one table from all benchmarks, the pictures, and a README that says what was measured."""

import argparse
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def figures():
    from reporting.readme import stored_figures

    return stored_figures(ROOT / "benchmarks" / "results.json")


def test_readme_and_docs_say_what_the_benchmarks_measured(figures):
    from bench import BENCHMARKS
    from reporting.readme import DOCUMENTS, PARTS, with_parts

    documents = {name: (ROOT / name).read_text(encoding="utf-8") for name in DOCUMENTS}
    everything = "".join(documents.values())
    for name, write in PARTS.items():
        assert everything.count(f"<!-- {name}: begin -->") == everything.count(f"<!-- {name}: end -->") == 1
        assert len(write(figures)) > 3, f"no figures for the part {name}"
    for name, text in documents.items():
        assert with_parts(text, figures) == text, f"{name}: run python benchmarks/bench.py --readme"
    assert not figures["quick"]
    assert set(BENCHMARKS) <= set(figures)


def test_only_full_figures_of_one_machine_are_published(figures, tmp_path):
    from bench import publish, with_others

    (tmp_path / "quick.json").write_text('{"quick": true}')
    with pytest.raises(SystemExit, match="figures of a quick run, which the README does not show"):
        publish(tmp_path / "quick.json")
    with pytest.raises(SystemExit, match="figures of another processor"):
        with_others(figures, {"machine": figures["machine"] | {"processor": "Z80"}, "quick": False})


def test_runs_of_other_variants_and_seeds_stay_in_the_table_of_a_real_voice(tmp_path):
    from equal_minutes import merged, rows_of

    def made(variant, steps, seed, loss):
        about = {"variant": variant, "steps": steps, "seed": seed, "parameters": 9, "settings": ""}
        return about | {"figures": {"flow_loss": loss}}

    out = tmp_path / "voice.json"
    out.write_text(json.dumps({"runs": [made("a", 30, 0, 9.0), made("a", 60, 0, 0.25), made("b", 30, 0, None)]}))
    runs = [made("a", 30, 0, 0.5), made("a", 30, 1, 0.7)]
    assert [(row["variant"], row["steps"], row["seeds"], row["flow_loss"]) for row in rows_of(merged(runs, out))] == [
        ("a", 30, 2, "0.600 ±0.141"), ("a", 60, 1, "0.250"), ("b", 30, 1, None),
    ]  # fmt: skip
    assert merged(runs, tmp_path / "none.json") == runs


def test_a_training_that_was_stopped_is_not_judged(monkeypatch, tmp_path):
    import equal_minutes

    def stopped(*_, **__):
        (tmp_path / "metrics.jsonl").write_text('{"split": "train", "step_seconds": 0.1}\n')

    monkeypatch.setattr(equal_minutes, "command", stopped)
    options = argparse.Namespace(config="tiny", cache=tmp_path)
    with pytest.raises(SystemExit, match=f"{tmp_path} was stopped after 1 of 2 steps; the same command continues"):
        equal_minutes.run_training([], tmp_path, 0, 2, options)


def test_the_pictures_are_drawn_from_the_figures(figures, tmp_path):
    from reporting.pictures import draw

    draw(figures, tmp_path)
    pictures = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    assert set(pictures) == {"steps.svg", "fill.svg"}
    assert re.search(r">93\.0%<", pictures["fill.svg"])  # eight shapes on ljspeech_lengths.csv
    (axes_top,) = re.findall(r'<clipPath .*?<rect x="[\d.]+" y="([\d.]+)"', pictures["steps.svg"], re.DOTALL)
    legend = re.findall(r' y="([\d.]+)"[^>]*>(?:compiled for every new shape|locked shapes)<', pictures["steps.svg"])
    assert [float(text) < float(axes_top) for text in legend] == [True, True], "above the lines"
