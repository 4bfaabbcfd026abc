"""Imports flow one way, between the stages and between the folders of each; and --help loads nothing heavy."""

import ast
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FORBIDDEN = {
    "shared": {"xtts.precompute", "xtts.trainer", "tensorflow", "keras", "librosa"},
    "precompute": {"xtts.trainer", "tensorflow", "keras"},
    "trainer": {"xtts.precompute", "librosa"},
}
ALLOWED = {"shared/audio/griffin_lim.py": {"librosa", "librosa.filters"}}
"""Inside functions only: the way back to sound."""
HEAVY = {"tensorflow", "keras", "numpy", "scipy", "librosa", "numba", "pyarrow", "soundfile", "pydantic", "matplotlib"}
COMMANDS = ("xtts-precompute", "xtts-train", "xtts-doctor", "xtts-synth")


MODULES = {stage: sorted((ROOT / stage).rglob("*.py")) for stage in FORBIDDEN}


def imports(path):
    """(module, at top level) of every import in a file; `from package import module` is the module."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    top = set(map(id, tree.body))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, id(node) in top) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            folder = ROOT.joinpath(*node.module.split(".")[1:])
            for alias in node.names:
                is_module = node.module.startswith("xtts.") and (folder / f"{alias.name}.py").is_file()
                yield f"{node.module}.{alias.name}" if is_module else node.module, id(node) in top


TOPS = ["cli", "library", "__init__"]
"""Modules of a stage above its folders: `__init__` hands out the names of `library`."""
ROOMS = {
    "shared": [["system", "audio", "text"], ["storage"], ["cache"]],
    "precompute": [
        ["workers", "archives"], ["corpus"], ["features"], ["build"], ["check", "view", "sample"], ["cli", "library"],
        ["__init__"],
    ],
    "trainer": [
        ["system", "data", "model"], ["engine"], ["evaluation"], ["reporting"], ["run"], ["synth", "doctor"], ["serve"],
        ["cli", "library"], ["__init__"],
    ],
}  # fmt: skip
"""The folders of each stage, lowest first: a folder imports itself and those of the rows before its own. Modules at the
top of `shared/` (configuration, errors) are below all."""


@pytest.mark.parametrize("stage", sorted(FORBIDDEN))
def test_imports_flow_one_way_between_the_stages_and_between_the_folders_of_each(stage):
    height = {room: i for i, row in enumerate(ROOMS[stage]) for room in row}
    assert {path.parent.name for path in (ROOT / stage).glob("*/__init__.py")} == set(height) - set(TOPS)
    wrong = []
    for path in MODULES[stage]:
        place = path.relative_to(ROOT).with_suffix("")
        here = place.parts[1]
        for module, at_top in imports(path):
            there = module.split(".")[2] if module.startswith(f"xtts.{stage}.") else here
            upwards = here != there and height.get(there, -1) >= height.get(here, 0)
            barred = any(f"{module}.".startswith(f"{name}.") for name in FORBIDDEN[stage])
            if upwards or (barred and (at_top or module not in ALLOWED.get(f"{place}.py", ()))):
                wrong.append(f"{place}.py: {module}")
    assert not wrong


def test_no_module_imports_itself_by_way_of_others():
    files = {f"xtts.{'.'.join(p.relative_to(ROOT).with_suffix('').parts)}": p for s in FORBIDDEN for p in MODULES[s]}
    needs = {name: {module for module, _ in imports(path) if module in files} for name, path in files.items()}
    TopologicalSorter(needs).prepare()  # the error names the cycle


@pytest.mark.parametrize("command", COMMANDS)
def test_help_loads_nothing_heavy(command):
    executable = Path(sys.executable).with_name(command)
    run = [sys.executable, "-X", "importtime", executable, "--help"]
    result = subprocess.run(run, capture_output=True, text=True, check=False)
    assert "Usage" in result.stdout
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in result.stderr.splitlines()}
    assert {"click", "xtts"} <= loaded
    assert not loaded & HEAVY


WITHOUT = """
import sys
sys.modules.update(dict.fromkeys(["fcntl", "grp", "pwd", "resource", "termios"]))
sys.argv = ["xtts-precompute", *sys.argv[1:]]
from xtts.precompute.cli import main
main()
"""


def test_a_system_without_file_locks_is_refused_in_one_line(tiny_corpus, tmp_path):
    """As on Windows: modules that Python lacks there cannot be imported."""
    run = [sys.executable, "-c", WITHOUT, "build", "--data", tiny_corpus, "--cache", tmp_path / "cache"]
    result = subprocess.run(run, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr.count("\n")) == (2, 1)
    assert "expected Linux, macOS or WSL2; on Windows, run the same command in WSL2" in result.stderr
