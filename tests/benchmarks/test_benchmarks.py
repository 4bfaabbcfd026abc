"""The programs of benchmarks/: each starts, one measures, and the pages say what was measured."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from xtts.shared.config_flags import resolve
from xtts.shared.text.text_normalization import expand
from xtts.trainer.loop.jax_runtime import JaxRuntime
from xtts.trainer.loop.step_names import training_step
from xtts.trainer.run.train_steps import ExportedSteps

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "benchmarks"


@pytest.fixture(autouse=True)
def on_path(monkeypatch):
    """Make the programs and their folders importable, as where they run."""
    monkeypatch.syspath_prepend(BENCHMARKS)


@pytest.mark.parametrize("program", sorted({path.stem for path in BENCHMARKS.glob("*.py")} - {"training"}))
def test_a_program_finds_what_it_imports(program, monkeypatch, capsys):
    """All but the one that needs a process of its own, for its settings of TensorFlow."""
    monkeypatch.setattr("sys.argv", [f"{program}.py", "--help"])
    with pytest.raises(SystemExit, match="0"):
        importlib.import_module(program).main()
    assert f"usage: {program}.py" in capsys.readouterr().out


def test_readme_and_docs_say_what_the_benchmarks_measured():
    from bench import BENCHMARKS
    from reporting.readme import DOCUMENTS, stored_figures, with_parts

    figures = stored_figures(ROOT / "benchmarks" / "results.json")
    documents = {name: (ROOT / name).read_text(encoding="utf-8") for name in DOCUMENTS}
    for name in ("voices", "speed", "bench"):
        assert "".join(documents.values()).count(f"<!-- {name}: begin -->") == 1
    for name, text in documents.items():
        assert with_parts(text, figures) == text, f"{name}: run python benchmarks/bench.py --readme"
    assert set(BENCHMARKS) <= set(figures)
    assert not figures["quick"]


def test_every_size_has_a_schedule_that_suits_a_corpus_of_any_length():
    import schedules

    for size in schedules.SIZES:
        for gpu in (schedules.NO_GPU, "a100", "h200", "rtx3060", "rtx4090"):
            for hours in schedules.HOURS:
                row = schedules.row(size, gpu, hours)
                steps = int(row["steps"].replace(",", ""))
                assert float(row["warm-up"].rstrip("%")) <= 5.0, row
                assert int(row["validations"]) >= 8, row
                assert 1_500 <= steps <= 20_000 if size == "tiny" else steps >= 20_000, row
                assert gpu == schedules.NO_GPU or float(row["clips a step"]) * 40 <= 1.01 * len(schedules.corpus(hours))


def test_everyday_texts_are_read_as_people_say_them():
    from readings import is_right, read_table

    rows = list(read_table(ROOT / "tests" / "shared" / "text" / "everyday_texts.tsv"))
    wrong = [(text, expand(text, code)) for code, text, *rest in rows if not is_right(expand(text, code), *rest)]
    assert (len(rows), wrong) == (100, [])


@pytest.mark.long
@pytest.mark.parametrize("program", ["rebuild --clips 12 --rounds 1 --config tiny", "training --quick --only c"])
def test_a_program_measures(program, tmp_path):
    name, *words = program.split()
    words += ["--work", tmp_path / "work", "--out", tmp_path / "figures.json"]
    subprocess.run([sys.executable, BENCHMARKS / f"{name}.py", *map(str, words)], check=True)
    assert json.loads((tmp_path / "figures.json").read_text())


@pytest.mark.long
def test_a_step_of_normal_launches_few_kernels(tiny_cache, tmp_path):
    """In float32: around each product in bfloat16 a CPU converts its operands, which a GPU does not."""
    from training_parts.kernels import count_kernels

    words = ["--config", "normal", "--cache", tiny_cache, "--out", tmp_path / "run", "--steps", 6, "--export-steps"]
    sets = ("shapes.buckets=2", "split.validation_fraction=0.1", "training.mixed_precision=float32",
            "training.batch_size=8")
    words += ["--init-from", "nothing", *(part for value in sets for part in ("--set", value))]
    line = [sys.executable, "-c", "from xtts.trainer.cli import main; main()", *map(str, words)]
    subprocess.run(line, check=True, stdout=subprocess.DEVNULL)
    steps = ExportedSteps(tmp_path / "run" / "steps", resolve([str(tmp_path / "run" / "config.yaml")], [], {}))
    runtime = JaxRuntime(steps.programs, {})
    runtime.compile(training_step(1))
    counted = count_kernels(runtime.optimised(training_step(1)))
    assert sum(loop.turns for loop in counted.loops) <= 60, "a sixteenth of the frames"
    assert counted.launched <= 2500
