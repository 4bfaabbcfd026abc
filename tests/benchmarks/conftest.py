"""The programs of benchmarks/, in this process."""

import importlib
import json
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(autouse=True)
def on_path(monkeypatch):
    """The programs and their folders can be imported, as where they are run."""
    monkeypatch.syspath_prepend(BENCHMARKS)


@pytest.fixture
def measure(monkeypatch, tmp_path, capfd):
    """`measure("rebuild", "--clips", 12, ...)`: (the figures of a program, what it printed)."""

    def run(program, *arguments):
        out = tmp_path / "figures.json"
        monkeypatch.setattr("sys.argv", [f"{program}.py", *map(str, arguments), "--out", str(out)])
        importlib.import_module(program).main()
        return json.loads(out.read_text()), capfd.readouterr().out

    return run
