"""Imports flow one way: precompute -> shared <- trainer; and --help loads nothing heavy."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FORBIDDEN = {
    "shared": {"xtts.precompute", "xtts.trainer", "tensorflow", "keras", "librosa"},
    "precompute": {"xtts.trainer", "tensorflow", "keras"},
    "trainer": {"xtts.precompute", "librosa"},
}
ALLOWED = {"shared/griffin_lim.py": {"librosa", "librosa.filters"}}
"""The exception, inside functions only: the way back to sound."""
HEAVY = {"tensorflow", "keras", "numpy", "scipy", "librosa", "numba", "pyarrow", "soundfile", "pydantic", "matplotlib"}
COMMANDS = ("xtts-precompute", "xtts-train", "xtts-doctor", "xtts-synth")


def imports(path):
    """(module, at top level) of every import in a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    top = set(map(id, tree.body))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, id(node) in top) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module, id(node) in top


@pytest.mark.parametrize("stage", sorted(FORBIDDEN))
def test_imports_flow_one_way(stage):
    files = sorted((ROOT / stage).rglob("*.py"))
    assert files
    wrong = [
        f"{path.relative_to(ROOT)}: {module}"
        for path in files
        for module, at_top in imports(path)
        if at_top or module not in ALLOWED.get(path.relative_to(ROOT).as_posix(), ())
        for forbidden in FORBIDDEN[stage]
        if module == forbidden or module.startswith(forbidden + ".")
    ]
    assert not wrong


def test_no_python_runs_inside_the_trainers_pipeline():
    for path in (ROOT / "trainer").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert not any(word + "(" in text for word in ("py_function", "numpy_function", "from_generator")), path


@pytest.mark.parametrize("command", COMMANDS)
def test_help_loads_nothing_heavy(command):
    """What keeps --help at once: a clock would only measure the machine."""
    executable = Path(sys.executable).with_name(command)
    run = [sys.executable, "-X", "importtime", executable, "--help"]
    result = subprocess.run(run, capture_output=True, text=True, check=False)
    assert result.returncode == 0
    assert "Usage" in result.stdout
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in result.stderr.splitlines()}
    assert {"click", "xtts"} <= loaded
    assert not loaded & HEAVY
