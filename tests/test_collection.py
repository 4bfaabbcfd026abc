"""Every test file is run: pytest leaves out folders by name, and says nothing. What the tests fork ends with them."""

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parent


def test_every_test_file_is_collected_in_a_folder_of_any_name(request, tmp_path):
    """151 tests in a folder called `build` went unrun for a day."""
    for name in ("build", "dist", "node_modules", "venv"):
        (tmp_path / name).mkdir()
    files = [*TESTS.rglob("test_*.py")]
    folders = {folder for file in files for folder in file.parents if folder.is_relative_to(TESTS)}
    for path in (*files, *folders, *tmp_path.iterdir()):
        assert not request.config.hook.pytest_ignore_collect(collection_path=path, config=request.config), path


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
