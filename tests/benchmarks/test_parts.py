"""What the benchmarks count, simulate and compare with, without measuring."""

import importlib
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
LOADS_TENSORFLOW = {"export_step", "training"}
"""With settings of their own for the process."""
PROGRAMS = sorted({path.stem for path in BENCHMARKS.glob("*.py")} - LOADS_TENSORFLOW)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_still_finds_what_it_imports(program, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", [f"{program}.py", "--help"])
    with pytest.raises(SystemExit, match="0"):
        importlib.import_module(program).main()
    assert f"usage: {program}.py" in capsys.readouterr().out


def test_every_size_has_a_schedule_that_suits_a_corpus_of_any_length():
    import schedules

    for size in schedules.SIZES:
        for gpu in (schedules.NO_GPU, "a100", "h200", "rtx3060", "rtx4090"):
            for hours in schedules.HOURS:
                row = schedules.row(size, gpu, hours)
                steps = int(row["steps"].replace(",", ""))
                assert float(row["warm-up"].rstrip("%")) <= 5.0, row
                assert int(row["validations"]) >= 8, row
                assert size == "tiny" or steps >= 20_000, row
                assert gpu == schedules.NO_GPU or float(row["clips a step"]) * 40 <= 1.01 * len(schedules.corpus(hours))
