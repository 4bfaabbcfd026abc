"""`make bench`: one table from all benchmarks, the pictures, and a README that says what was measured."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def figures():
    return json.loads((ROOT / "benchmarks" / "results.json").read_text(encoding="utf-8"))


@pytest.fixture
def summarise():
    from reporting.summary import summarise

    return summarise


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


def test_only_full_figures_are_published(tmp_path):
    from bench import publish

    with pytest.raises(SystemExit, match=r"none\.json: no such file; measure first"):
        publish(tmp_path / "none.json")
    (tmp_path / "quick.json").write_text('{"quick": true}')
    with pytest.raises(SystemExit, match="figures of a quick run, which the README does not show"):
        publish(tmp_path / "quick.json")


def test_figures_of_another_machine_are_not_mixed(figures):
    from bench import with_others

    fresh = {"machine": figures["machine"] | {"versions": {"torch": None, "numpy": "9"}}, "quick": False}
    mixed = with_others(figures, fresh)
    assert mixed["machine"]["versions"] == figures["machine"]["versions"] | {"numpy": "9"}
    assert mixed["training"] == figures["training"]
    with pytest.raises(SystemExit, match="figures of another processor"):
        with_others(figures, {**fresh, "machine": fresh["machine"] | {"processor": "Z80"}})
    with pytest.raises(SystemExit, match="figures of a quick run"):
        with_others({**figures, "quick": True}, fresh)


def test_a_part_is_written_between_its_marks_alone(summarise, figures):
    from reporting.readme import with_parts

    marks = {name: (f"<!-- {name}: begin -->", f"<!-- {name}: end -->") for name in ("rebuild", "speech")}
    text = "".join(f"a {begin}\nold\n{end}\n" for begin, end in marks.values())
    fresh = {"size": "1.0 GiB", "fill": 0.911, "written": 69, "kept": 0, "mib": 286}
    rebuild = {
        "clips": 13_100, "hours": 24.0, "config": "normal",
        "seconds": {"from nothing": 20.2, "again": 0.7, "verify": 1.3},
        "told": {"from nothing": fresh, "again": fresh | {"written": 0, "kept": 69}},
    }  # fmt: skip
    some = {"machine": figures["machine"], "quick": False, "rebuild": rebuild}
    written = with_parts(text, some)
    head = "13,100 clips, 24.0 h, `--config normal`: 1.0 GiB, padding efficiency 91.1%\n"
    assert written.startswith(f"a <!-- rebuild: begin -->\n{head}")
    assert "| from nothing | 20.2 | 69 | 0 | 286 MiB |" in written
    assert "| again | 0.7 | 0 | 69 | 286 MiB |" in written
    assert written.endswith(text.splitlines(keepends=True)[3] + "old\n<!-- speech: end -->\n")
    assert [(row["ratio"], row["measured"]) for row in summarise(some)] == [("29x", "0.7 and 20.2 s")]


def test_the_tables_give_each_ratio_from_its_own_figures(summarise, figures):
    from reporting.gains import gain_rows

    contestants, sections = figures["precompute"]["contestants"], figures["training"]["sections"]
    gains = [row["gain"] for row in gain_rows(figures)]
    seconds = figures["rebuild"]["seconds"]
    assert len(gains) == 6
    assert gains[4] == f"{seconds['from nothing'] / seconds['one recording changed']:.0f}x"
    sections["c"] |= {"times_memcpy": 9.04, "memcpy_microseconds_an_example": 6.01}
    sections["c"]["table"][0]["cpu_microseconds_an_example"] = 54.3
    rows = {row["what"]: row for row in summarise(figures)}
    row = rows["features: the whole cache against librosa alone"]
    assert row["ratio"] == f"{contestants['librosa']['seconds'] / contestants['lockstep']['seconds']:.2f}x"
    slow, fast = sections["a"]["table"][:2]
    (name,) = [what for what in rows if what.startswith("step: locked against")]
    assert gains[0] == rows[name]["ratio"] == f"{slow['mean_seconds'] / fast['mean_seconds']:.0f}x"
    assert f"{slow['batches']} batches" in name
    row = rows["input pipeline alone: processor time of a clip against one memcpy of its bytes"]
    assert (row["ratio"], row["target"], row["measured"]) == ("9.0x", "at most 6x", "54 and 6.0 us")
    assert rows["input pipeline alone against tf.numpy_function"]["target"] == "6x"
    assert rows["input pipeline alone against from_generator"]["target"] == ""


def test_held_out_voices_are_scored_separately(summarise):
    import voices

    names, trained = list(voices.VOICES), len(voices.TRAINED)
    assert not set(voices.TRAINED) & set(voices.HELD_OUT)
    distances = np.full([4, len(names), len(names)], 9.0)
    distances[:, range(len(names)), range(len(names))] = 5.0
    distances[1:, trained, 0] = 4.0  # three sentences in the first unheard voice came out as the first of training
    figures = {"machine": {}, "quick": False, "voices": voices.judged(distances)}
    row = figures["voices"]["table"][trained]
    assert (row["kind"], row["nearest_other"], row["right_voice"]) == ("held out", names[0], 0.25)
    assert (row["own_voice,_dB"], row["nearest_other,_dB"]) == (5.0, 5.25)
    spoken = 4 * len(voices.HELD_OUT)
    chance = f"by chance {1 / len(names):.0%}"
    assert [(row["ratio"], row["measured"]) for row in summarise(figures)] == [
        ("100%", f"{4 * trained} of {4 * trained}; {chance}"),
        (f"{(spoken - 3) / spoken:.0%}", f"{spoken - 3} of {spoken}; {chance}"),
    ]


def test_the_pictures_are_drawn_from_the_figures(figures, tmp_path):
    from reporting.pictures import draw

    draw(figures, tmp_path)
    pictures = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    assert set(pictures) == {"steps.svg", "fill.svg", "throughput.svg"}
    assert re.search(r">93\.0%<", pictures["fill.svg"])  # eight shapes on ljspeech_lengths.csv
    ours = figures["precompute"]["contestants"]["lockstep"]["clips_per_second"]
    assert f">{ours:,.0f}<" in pictures["throughput.svg"]


def test_only_one_benchmark_is_run_and_reported(measure, monkeypatch, tmp_path):
    import bench

    row = {"size": "tiny", "step_ms": 500.0, "useful_frames_per_second": 2000,
           "share_of_alignment_search": 0.031, "share_of_optimizer": 0.2}  # fmt: skip

    def run(command, **_):
        assert command[1].endswith("step_cost.py")
        assert command[-1] == "--quick"
        Path(command[3]).write_text(json.dumps({"table": [row]}))
        return type("Done", (), {"returncode": 0, "stdout": "its own page\n"})

    monkeypatch.setattr(bench.subprocess, "run", run)
    kept, printed = measure("bench", "--quick", "--only", "step_cost")
    assert "| step of tiny: shares of alignment search and optimizer | 3.1% and 20.0% |" in printed
    assert "its own page" in (tmp_path / "figures.md").read_text()
    assert kept["step_cost"] == {"table": [row]}
    assert list(kept["seconds"]) == ["step_cost"]
