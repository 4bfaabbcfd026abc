"""`make bench`: one table from all benchmarks, the pictures, and a README that says what was measured."""

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
        assert len(write(figures)) > 4, f"no figures for the part {name}"
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


def test_each_ratio_is_that_of_its_own_figures(figures):
    from reporting.readme import SPEED, speed_lines
    from reporting.summary import summarise

    contestants, seconds = figures["precompute"]["contestants"], figures["rebuild"]["seconds"]
    slow, fast = figures["training"]["sections"]["a"]["table"][:2]
    rows = {row["what"]: row for row in summarise(figures)}
    (locked,) = [row["ratio"] for what, row in rows.items() if what.startswith("step: locked against")]
    assert locked == f"{slow['mean_seconds'] / fast['mean_seconds']:.0f}x"
    ratio = contestants["librosa"]["seconds"] / contestants["lockstep"]["seconds"]
    assert rows["features: the whole cache against librosa alone"]["ratio"] == f"{ratio:.2f}x"
    lines = speed_lines(figures)
    assert len(lines) == len(SPEED)
    assert f"**{seconds['from nothing'] / seconds['one recording changed']:.0f}x**" in lines[1]


def test_rows_of_other_variants_stay_in_the_table_of_a_real_voice(tmp_path):
    from equal_minutes import other_rows

    out = tmp_path / "voice.json"
    rows = [{"variant": name, "steps": steps} for name, steps in (("a", 30), ("a", 60), ("b", 30), ("all", None))]
    out.write_text(json.dumps({"table": rows}))
    assert other_rows([rows[0]], out) == rows[1:3]
    assert other_rows([rows[0]], tmp_path / "none.json") == []


def test_the_pictures_are_drawn_from_the_figures(figures, tmp_path):
    from reporting.pictures import draw

    draw(figures, tmp_path)
    pictures = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    assert set(pictures) == {"steps.svg", "fill.svg"}
    assert re.search(r">93\.0%<", pictures["fill.svg"])  # eight shapes on ljspeech_lengths.csv
