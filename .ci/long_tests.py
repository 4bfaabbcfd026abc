"""Which long tests a change needs, by what they import and where they lie. Prints their files, and why.

    python .ci/long_tests.py    # one file of tests/ a line on stdout, the reasons on stderr

Whole runs need all that a run consists of, which they import by way of the command.

The change is all since the commit in .ci/long-passed, where a whole `make test-long` that passed leaves it.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "tests"
OTHERS = {"benchmarks": "tests/benchmarks", "examples": "tests/test_examples.py", "configs": "tests/test_examples.py",
          "pyproject.toml": "tests/test_installed_wheel.py"}

WHOLE_RUNS = ("tests/trainer/run/", "tests/trainer/doctor/", "tests/trainer/models/test_third_kind.py")
PARTS_OF_RUNS = tuple(f"trainer/{folder}/" for folder in ("data", "loop", "models", "run", "stored"))


def imported_files(test: Path) -> set[str]:
    """A file of tests/, the helpers in tests/ that it imports, directly or not, and the modules that it imports itself.

    With the data beside any of these files: its tables, and scripts that it names.

    Without conftest.py and what it imports: the quick tests show whether fixtures hold.
    """
    helpers, files, todo = {path.stem: path for path in TESTS.rglob("*.py")}, set[str](), [test]
    while todo:
        path = todo.pop()
        text = path.read_text(encoding="utf-8")
        beside = (path.with_name(name) for name in re.findall(r'"(\w+\.js)"', text))
        files.update(file.relative_to(ROOT).as_posix() for file in (path, path.with_suffix(".yaml"), *beside))
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.module:
                modules = [node.module, *(f"{node.module}.{name.name}" for name in node.names)]
            else:
                modules = [name.name for name in node.names] if isinstance(node, ast.Import) else []
            todo += [helpers[name] for name in modules if name in helpers and helpers[name] != path]
            if path == test:
                names = [name.removeprefix("xtts.").replace(".", "/") for name in modules if name.startswith("xtts.")]
                files.update(f"{name}{end}" for name in names for end in (".py", "/__init__.py"))
    return files


def tested_by(changed: str) -> str:
    """The folder or file of tests/ that tests a changed path, since tests/ mirrors the tree; empty where none does."""
    path = Path(changed)
    if path.parts[0] not in ("precompute", "shared", "trainer"):
        return OTHERS.get(path.parts[0], "")
    folder = Path("tests") / path.parent
    while not (ROOT / folder).is_dir():
        folder = folder.parent
    return folder.as_posix()


def long_tests(changes: Iterable[str]) -> dict[str, str]:
    """Each file of long tests to run, and a changed path that requires it."""
    reasons, folders = dict[str, str](), {path: tested_by(path) for path in changes}
    for test in sorted(TESTS.rglob("test_*.py")):
        if "mark.long" in test.read_text(encoding="utf-8"):
            name, files = test.relative_to(ROOT).as_posix(), imported_files(test)
            lies_in = {name, Path(name).parent.as_posix()}
            parts = PARTS_OF_RUNS if name.startswith(WHOLE_RUNS) else ()
            asking = [
                path for path, folder in folders.items()
                if path in files or folder in lies_in or path.startswith(parts)
            ]
            if asking:
                reasons[name] = asking[0]
    return reasons


def main() -> None:
    """Print the choice for this repository."""
    passed = (ROOT / ".ci" / "long-passed").read_text().strip()
    command = ["git", "-C", str(ROOT), "diff", "--name-only", passed, "--"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False)
    if listed.returncode:
        print(f"long tests: all, since {passed[:12]} is not in this clone", file=sys.stderr)
        print("tests")
        return
    reasons = long_tests(listed.stdout.splitlines())
    for name, path in reasons.items():
        print(f"long tests: {name} ({path} changed since {passed[:12]})", file=sys.stderr)
        print(name)
    if not reasons:
        print(f"long tests: none, nothing they need changed since {passed[:12]}", file=sys.stderr)


if __name__ == "__main__":
    main()
