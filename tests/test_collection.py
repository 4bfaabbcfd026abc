"""Every test file is run: pytest leaves out folders by name, and says nothing. What the tests fork ends with them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent


def left_out(config: pytest.Config, tests: Path) -> list[str]:
    """The test files below a folder that pytest would not collect, because of their own name or a folder's."""
    return [
        file.relative_to(tests).as_posix()
        for file in sorted(tests.rglob("test_*.py"))
        for path in (*reversed(file.relative_to(tests).parents[:-1]), file.relative_to(tests))
        if config.hook.pytest_ignore_collect(collection_path=tests / path, config=config)
    ]


def test_every_test_file_is_collected(request):
    assert left_out(request.config, TESTS) == []


@pytest.mark.parametrize("folder", ["build", "dist", "node_modules", "venv"])
def test_a_folder_of_any_name_is_collected(request, tmp_path, folder):
    """151 tests in a folder called `build` went unrun for a day."""
    (tmp_path / folder / "inner").mkdir(parents=True)
    (tmp_path / folder / "inner" / "test_it.py").touch()
    assert left_out(request.config, tmp_path) == []


FORKING = """
import sys, time
import forked_program
forked_program.SERVER.set_forkserver_preload([])  # without TensorFlow
program = "import time; print('at work', flush=True); time.sleep(30); print('still at work')"
forked = forked_program.Forked(["-c", program], sys.argv[1])
time.sleep(60)
"""


def test_a_forked_program_ends_when_its_parent_is_killed(tmp_path):
    os.mkfifo(tmp_path / "screen")
    parent = subprocess.Popen([sys.executable, "-c", FORKING, tmp_path / "screen"], cwd=Path(__file__).parent)
    with open(tmp_path / "screen") as screen:
        assert screen.readline() == "at work\n"
        parent.kill()
        assert screen.read() == "", "read until nobody can write any more"
    parent.wait()
