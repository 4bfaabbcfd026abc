"""Imports flow one way, between the stages and between the folders of each; and --help loads nothing heavy."""

import ast
import re
import subprocess
import sys
import warnings
from collections import Counter, defaultdict
from graphlib import TopologicalSorter
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FORBIDDEN = {
    "shared": {"xtts.precompute", "xtts.trainer", "tensorflow", "keras", "librosa"},
    "precompute": {"xtts.trainer", "tensorflow", "keras"},
    "trainer": {"xtts.precompute", "librosa"},
}
HEAVY = {"tensorflow", "keras", "numpy", "scipy", "librosa", "numba", "pyarrow", "soundfile", "pydantic", "matplotlib"}
MODULES = {stage: sorted((ROOT / stage).rglob("*.py")) for stage in FORBIDDEN}
FILES = {f"xtts.{'.'.join(p.relative_to(ROOT).with_suffix('').parts)}": p for s in FORBIDDEN for p in MODULES[s]}


def imports(path):
    """The module of every import in a file; `from package import module` is the module."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            folder = ROOT.joinpath(*node.module.split(".")[1:])
            for alias in node.names:
                is_module = node.module.startswith("xtts.") and (folder / f"{alias.name}.py").is_file()
                yield f"{node.module}.{alias.name}" if is_module else node.module


TOPS = {"cli", "synth_cli", "voice_cli", "library", "__init__"}
"""Modules of a stage above its folders: `__init__` hands out the names of `library`."""
ROOMS = {
    "shared": "system audio text < cache",
    "precompute": "workers < archives < corpus < features < pipeline < check view questions sample transcribe < library"
    " < cli __init__",
    "trainer": "data system speech web < loop < stored < evaluation < models < export < run"
    " < serve record < doctor cli synth_cli library < voice_cli __init__",
}
"""The folders of each stage: one imports itself and those before the < before its own. Modules at the top of `shared/`
(configuration, errors) are below all."""


@pytest.mark.parametrize("stage", sorted(FORBIDDEN))
def test_imports_flow_one_way_between_the_stages_and_between_the_folders_of_each(stage):
    height = {room: i for i, row in enumerate(ROOMS[stage].split(" < ")) for room in row.split()}
    assert {path.parent.name for path in (ROOT / stage).glob("*/__init__.py")} == set(height) - TOPS
    wrong = []
    for path in MODULES[stage]:
        place = path.relative_to(ROOT).with_suffix("")
        here = place.parts[1]
        for module in imports(path):
            there = module.split(".")[2] if module.startswith(f"xtts.{stage}.") else here
            upwards = here != there and height.get(there, -1) >= height.get(here, 0)
            barred = any(f"{module}.".startswith(f"{name}.") for name in FORBIDDEN[stage])
            wrong += [f"{place}.py: {module}"] if barred or upwards else []
    assert wrong == []


def test_no_module_imports_itself_by_way_of_others():
    needs = {name: FILES.keys() & set(imports(path)) for name, path in FILES.items()}
    TopologicalSorter(needs).prepare()  # the error names the cycle


def test_speaking_is_a_small_program():
    """Both figures are printed: what `trainer/speech/` imports, and what a sentence of our voice loads."""
    modules = [name for name in FILES if name.startswith("xtts.trainer.speech.")]
    needed = set[str]()
    while modules:
        needed.add(name := modules.pop())
        modules += FILES.keys() & set(imports(FILES[name])) - needed
    assert [name for name in needed if not name.startswith(("xtts.shared.", "xtts.trainer.speech."))] == []
    program = "import sys; from xtts.trainer import load_voice; load_voice(sys.argv[1]).speak('Hello, it is 12:30.'); "
    program += "print(*(name for name in sys.modules if name.startswith('xtts.')))"
    run = [sys.executable, "-c", program, ROOT / "voices" / "base"]
    loaded = subprocess.run(run, capture_output=True, text=True, check=True).stdout.split()
    for what, names, files, lines in (("imports", needed, 44, 5550), ("loads", FILES.keys() & {*loaded}, 50, 5550)):
        total = sum(FILES[name].read_text(encoding="utf-8").count("\n") for name in names)
        print(f"speech {what} {len(names)} files, {total:,} lines")
        assert len(names) <= files
        assert total <= lines


def test_a_module_has_two_importers_or_40_lines():
    importers = Counter(module for path in FILES.values() for module in set(imports(path)))
    lines = {name: len(path.read_text(encoding="utf-8").splitlines()) for name, path in FILES.items()}
    entries = ("xtts.trainer.synth_cli", "xtts.trainer.voice_cli", "__init__")
    crumbs = [name for name in FILES if not name.endswith(entries) and importers[name] < 2 and lines[name] < 40]
    assert crumbs == []


COMMANDS = ("xtts-precompute", "xtts-train", "xtts-voice", "xtts-record", "xtts-doctor", "xtts-synth")


@pytest.mark.parametrize("command", COMMANDS)
def test_help_loads_nothing_heavy_and_the_version_is_that_of_the_package(command):
    run = [sys.executable, "-X", "importtime", Path(sys.executable).with_name(command), "--help"]
    result = subprocess.run(run, capture_output=True, text=True, check=False)
    assert "Usage" in result.stdout
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in result.stderr.splitlines()}
    assert {"click", "xtts"} <= loaded
    from_a_model = {"pydantic"} if command == "xtts-synth" else set()  # the options of a synthesis, a fifth of a second
    assert not loaded & HEAVY - from_a_model
    result = subprocess.run([*run[:-1], "--version"], capture_output=True, text=True)
    assert result.stdout == f"{command}, version {version('lockstep-tts')}\n"


def test_a_system_without_file_locks_is_refused_in_one_line(tiny_corpus, tmp_path):
    """As on Windows: modules that Python lacks there cannot be imported."""
    code = "import sys; sys.modules.update(dict.fromkeys(['fcntl', 'grp', 'pwd', 'resource', 'termios'])); "
    code += "from xtts.precompute.cli import main; main()"
    run = [sys.executable, "-c", code, "build", "--data", tiny_corpus, "--cache", tmp_path / "cache"]
    result = subprocess.run(run, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr.count("\n")) == (2, 1)
    assert "expected Linux, macOS or WSL2; on Windows, run the same command in WSL2" in result.stderr


def test_a_class_name_means_one_thing():
    found = defaultdict(list)
    for path in FILES.values():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(str(path.relative_to(ROOT)))
    assert {name: paths for name, paths in found.items() if len(paths) > 1} == {}


def test_no_folder_outgrows_its_lines():
    """The limits in the table of docs/architecture.md, with a warning 300 lines before each."""
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.+/`) \| [\d,]+ \| \d+ \| ([\d,]+) \|", page, re.MULTILINE)
    assert len(rows) == 4
    for folders, limit in rows:
        most = int(limit.replace(",", ""))
        paths = [path for folder in re.findall(r"`(\w+)/`", folders) for path in (ROOT / folder).rglob("*.py")]
        lines = sum(path.read_text(encoding="utf-8").count("\n") for path in paths)
        if lines > most - 300:
            warnings.warn(f"{folders}: {lines} lines, near the limit of {most}", stacklevel=1)
        assert lines <= most, f"{folders}: {lines} lines, at most {most}"
