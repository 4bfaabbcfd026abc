"""`make bench`: one table from all benchmarks, the pictures, and a README that says what was measured."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def figures():
    return json.loads((ROOT / "benchmarks" / "results.json").read_text(encoding="utf-8"))


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
    from reporting.gains import gain_rows
    from reporting.summary import summarise

    contestants, seconds = figures["precompute"]["contestants"], figures["rebuild"]["seconds"]
    slow, fast = figures["training"]["sections"]["a"]["table"][:2]
    rows, gains = {row["what"]: row for row in summarise(figures)}, [row["gain"] for row in gain_rows(figures)]
    (locked,) = [row["ratio"] for what, row in rows.items() if what.startswith("step: locked against")]
    assert gains[0] == locked == f"{slow['mean_seconds'] / fast['mean_seconds']:.0f}x"
    assert gains[4] == f"{seconds['from nothing'] / seconds['one recording changed']:.0f}x"
    ratio = contestants["librosa"]["seconds"] / contestants["lockstep"]["seconds"]
    assert rows["features: the whole cache against librosa alone"]["ratio"] == f"{ratio:.2f}x"


def test_the_pictures_are_drawn_from_the_figures(figures, tmp_path):
    from reporting.pictures import draw

    draw(figures, tmp_path)
    pictures = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    assert set(pictures) == {"steps.svg", "fill.svg"}
    assert re.search(r">93\.0%<", pictures["fill.svg"])  # eight shapes on ljspeech_lengths.csv
