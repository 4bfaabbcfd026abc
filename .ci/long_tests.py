"""Which long tests a change needs: those of the folders that it touches. Prints them, and why.

    python .ci/long_tests.py    # one line a folder or file of tests/ on stdout, the reasons on stderr

The change is all since the commit in .ci/long-passed, where a whole `make test-long` that passed leaves it.
"""

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
STAGES = ("precompute", "shared", "trainer")
OTHERS = {"benchmarks": "tests/benchmarks", "examples": "tests/test_examples.py", "configs": "tests/test_examples.py",
          "pyproject.toml": "tests/test_installed_wheel.py"}  # fmt: skip


def folder_of(changed: str) -> str:
    """The folder or file of tests/ that tests a changed path; empty where none does.

    tests/ mirrors the tree: `trainer/run/checkpoint.py` belongs to tests/trainer/run. What lies in tests/ itself and is
    no test serves all of them.
    """
    path = Path(changed)
    if path.parts[0] == "tests":
        if len(path.parts) == 2:
            return changed if path.name.startswith("test_") and (ROOT / path).exists() else "tests"
        folder = path.parent
    elif path.parts[0] in STAGES:
        folder = Path("tests") / path.parent
    else:
        return OTHERS.get(path.parts[0], "")
    while not (ROOT / folder).is_dir():
        folder = folder.parent
    return folder.as_posix()


def chosen(changes: Iterable[str]) -> dict[str, str]:
    """Each folder or file of tests to run, and a changed path that asks for it; none that another one holds."""
    wanted = {folder_of(path): path for path in changes}
    wanted.pop("", None)
    return {
        name: path
        for name, path in sorted(wanted.items())
        if not any(parent.as_posix() in wanted for parent in Path(name).parents)
    }


def main() -> None:
    """Print the choice for this repository."""
    passed = (ROOT / ".ci" / "long-passed").read_text().strip()
    command = ["git", "-C", str(ROOT), "diff", "--name-only", passed, "--"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    changes = found.stdout.splitlines() if found.returncode == 0 else ["tests/conftest.py"]
    if found.returncode:
        print(f"long tests: all, since {passed[:12]} is not in this clone", file=sys.stderr)
    for name, path in (selection := chosen(changes)).items():
        print(f"long tests: {name} ({path} changed since {passed[:12]})", file=sys.stderr)
        print(name)
    if not selection:
        print(f"long tests: none, nothing changed since {passed[:12]}", file=sys.stderr)


if __name__ == "__main__":
    main()
