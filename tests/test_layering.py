"""Imports flow one way, between the stages and between the folders of each; and --help loads nothing heavy."""

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
ALLOWED = {"shared/audio/griffin_lim.py": {"librosa", "librosa.filters"}}
"""The exception, inside functions only: the way back to sound."""
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


def room_of(module):
    """(stage, its folder) of a module `xtts.STAGE.FOLDER...`; the folder is "" for a module at the top of `shared`."""
    parts = module.split(".")[1:]
    is_folder = len(parts) > 1 and (ROOT / parts[0] / parts[1]).is_dir()
    return parts[0], parts[1] if is_folder or (len(parts) == 2 and parts[1] in TOPS) else ""


@pytest.mark.parametrize("stage", sorted(FORBIDDEN))
def test_imports_flow_one_way(stage):
    assert MODULES[stage]
    wrong = [
        f"{path.relative_to(ROOT)}: {module}"
        for path in MODULES[stage]
        for module, at_top in imports(path)
        if at_top or module not in ALLOWED.get(path.relative_to(ROOT).as_posix(), ())
        for forbidden in FORBIDDEN[stage]
        if module == forbidden or module.startswith(forbidden + ".")
    ]
    assert not wrong


@pytest.mark.parametrize("stage", sorted(ROOMS))
def test_folders_import_only_those_below_them(stage):
    height = {room: i for i, row in enumerate(ROOMS[stage]) for room in row}
    folders = {path.parent.name for path in (ROOT / stage).glob("*/__init__.py")}
    assert folders == set(height) - set(TOPS)
    wrong = []
    for path in MODULES[stage]:
        parts = path.relative_to(ROOT).with_suffix("").parts
        _, here = room_of(".".join(["xtts", *parts]))
        for module, _ in imports(path):
            if module and module.startswith(f"xtts.{stage}."):
                _, there = room_of(module)
                if here != there and height.get(there, -1) >= height.get(here, -1):
                    wrong.append(f"{path.relative_to(ROOT)}: {module}")
    assert not wrong


def test_no_module_imports_itself_by_way_of_others():
    files = {f"xtts.{'.'.join(p.relative_to(ROOT).with_suffix('').parts)}": p for s in FORBIDDEN for p in MODULES[s]}
    needs = {name: {module for module, _ in imports(path) if module in files} for name, path in files.items()}
    while free := [name for name, found in needs.items() if not found]:
        for name in free:
            del needs[name]
        needs = {name: found - set(free) for name, found in needs.items()}
    assert not needs, f"import cycle among {sorted(needs)}"


def test_no_python_runs_inside_the_trainers_pipeline():
    for path in MODULES["trainer"]:
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


POSIX_ONLY = {"fcntl", "grp", "pwd", "resource", "termios"}
WITHOUT = f"""
import sys
sys.modules.update(dict.fromkeys({sorted(POSIX_ONLY)}))
sys.argv = ["xtts-precompute", *sys.argv[1:]]
from xtts.precompute.cli import main
main()
"""


def test_what_only_posix_has_is_imported_inside_functions():
    wrong = [
        f"{path.relative_to(ROOT)}: {module}"
        for stage in FORBIDDEN
        for path in MODULES[stage]
        for module, at_top in imports(path)
        if at_top and module in POSIX_ONLY
    ]
    assert not wrong


def test_a_system_without_file_locks_is_refused_in_one_line(tiny_corpus, tmp_path):
    """As on Windows: modules that Python lacks there cannot be imported."""
    run = [sys.executable, "-c", WITHOUT, "build", "--data", tiny_corpus, "--cache", tmp_path / "cache"]
    result = subprocess.run(run, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert len(result.stderr.splitlines()) == 1
    assert "expected Linux, macOS or WSL2; on Windows, run the same command in WSL2" in result.stderr
