"""`make test`: the quick tests in two lanes of processes that end early, since XLA gives no memory back.

    python tests/rounds.py [OPTIONS OF PYTEST ...] [FILE OR FOLDER ...]

A process runs the files of a folder, or of small ones side by side, since each that imports TensorFlow takes ten
seconds to begin. It ends after a file that left it more memory than `MOST_KEPT`; the next continues.
The last lines say what all of it held at most at any moment, and for how long it ran.
"""

import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import groupby
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
LANES, MOST_TOGETHER, MOST_KEPT, MOST_IN_A_FILE = 2, 12, 1500, 2000
"""MOST_TOGETHER: files of several small folders in a process; MOST_KEPT: MiB of its own after a file, without what it
maps from files; MOST_IN_A_FILE: after any test."""
FINISHED = "LOCKSTEP_FINISHED_TESTS"
"""Variable with the path of a file to which a process writes each test and each file of tests that it has finished."""


def own_memory() -> int:
    """MiB of this process that are not mapped from files; 0 where there is no /proc."""
    with suppress(FileNotFoundError):
        return int(re.search(r"RssAnon:\s+(\d+)", Path("/proc/self/status").read_text())[1]) // 1024
    return 0


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item, nextitem):
    """Note each test and each file; leave the others to the next process if this one has grown."""
    result = yield
    if FINISHED in os.environ:
        is_last = nextitem is None or nextitem.path != item.path
        with open(os.environ[FINISHED], "a") as finished:
            finished.write(f"{item.nodeid}\n" + f"{item.path}\n" * is_last)
        if own_memory() > (MOST_KEPT if is_last else MOST_IN_A_FILE):
            del item.session.items[item.session.items.index(item) + 1 :]
    return result


def pytest_collection_modifyitems(items):
    """Leave out what an earlier process has run of a file."""
    if FINISHED in os.environ:
        finished = {*Path(os.environ[FINISHED]).read_text().splitlines()}
        items[:] = [item for item in items if item.nodeid not in finished]


def pytest_collection_finish(session):
    """Note the files that have no test to run, so that no process begins for them alone."""
    if FINISHED in os.environ:
        paths = {Path(word).resolve() for word in session.config.args} - {item.path for item in session.items}
        with open(os.environ[FINISHED], "a") as finished:
            finished.writelines(f"{path}\n" for path in paths)


def part_of(file: Path) -> str:
    """The part of the program that a file of tests is about, such as `trainer`."""
    return file.relative_to(TESTS).parts[0]


def slowness(files: list[Path]) -> tuple[bool, int]:
    """Sort key by how long files of tests take together."""
    return part_of(files[0]) == "trainer", len(files)


class Lanes:
    """Runs folders of tests, each in as many processes as it needs, and adds up what pytest says."""

    def __init__(self, options: list[str]) -> None:
        self.options, self.counts, self.failed, self._screen = options, Counter[str](), False, threading.Lock()

    def run(self, files: list[Path]) -> None:
        """Run files, and print each process's output when it ends."""
        noted, grown = set[str](), True
        with tempfile.NamedTemporaryFile("r") as finished:
            environment = os.environ | {FINISHED: finished.name}
            # A process that noted nothing failed to start: another would, too.
            while grown and (left := [file for file in files if str(file) not in noted]):
                print(f"{left[0].parent.relative_to(TESTS.parent)}: {len(left)} files", flush=True)
                self._run(left, environment)
                before, noted = noted, {*Path(finished.name).read_text().splitlines()}
                grown = noted != before

    def _run(self, files: list[Path], environment: Mapping[str, str]) -> None:
        # A folder of temporary files that stays: what one process made names the caches that it made it of.
        place = f"--basetemp={tempfile.mkdtemp(dir=os.environ['LOCKSTEP_TESTS'])}"
        line = [sys.executable, "-m", "pytest", "--no-header", place, *self.options, *map(str, files)]
        done = subprocess.run(line, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        with self._screen:
            print(done.stdout, flush=True)
            counted = re.findall(r"(\d+) (\w+)", done.stdout.strip().rpartition("\n")[2])
            self.counts.update({kind.rstrip("s"): int(number) for number, kind in counted})
            self.failed |= done.returncode not in (0, pytest.ExitCode.NO_TESTS_COLLECTED)


def memory_of_all() -> int:
    """MiB of this process's children and theirs; what several map is counted once."""
    children, below, total = defaultdict(list), [os.getpid()], 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):
            children[int(path.read_text().rpartition(")")[2].split()[1])].append(int(path.parent.name))
    while below:
        for child in children[below.pop()]:
            below.append(child)
            with suppress(FileNotFoundError, ProcessLookupError, PermissionError):
                rollup = Path(f"/proc/{child}/smaps_rollup").read_text()
                total += int(match[1]) if (match := re.search(r"^Pss:\s+(\d+)", rollup, re.MULTILINE)) else 0
    return total // 1024


def main() -> None:
    """Run the tests, and exit with 1 if one failed."""
    places = [Path(word).resolve() for word in sys.argv[1:] if Path(word).exists()]
    lanes = Lanes([word for word in sys.argv[1:] if not Path(word).exists()])
    files = [
        file for file in sorted(TESTS.rglob("test_*.py")) if any(file.is_relative_to(p) for p in places or [TESTS])
    ]
    folders = list[list[Path]]()
    for _, group in groupby(files, key=lambda file: file.parent):
        own = [*group]
        if folders and len(folders[-1]) + len(own) <= MOST_TOGETHER and part_of(folders[-1][0]) == part_of(own[0]):
            folders[-1] += own
        else:
            folders.append(own)
    began, most, ended = time.monotonic(), 0, threading.Event()

    def watch() -> None:
        nonlocal most
        while not ended.wait(1.0):
            most = max(most, memory_of_all())

    with tempfile.TemporaryDirectory(prefix="lockstep-tests-") as shared, ThreadPoolExecutor(LANES) as threads:
        os.environ["LOCKSTEP_TESTS"] = shared
        threading.Thread(target=watch, daemon=True).start()
        # Of those as slow, the later ones first: `evaluation` would wait for the finished run that `run` makes.
        list(threads.map(lanes.run, sorted(reversed(folders), key=slowness, reverse=True)))
        ended.set()
    print(f"{most / 1024:.1f} GiB at most in all processes together, {(time.monotonic() - began) / 60:.1f} minutes")
    counts = lanes.counts
    print(f"{counts['passed']} passed, {counts['failed'] + counts['error']} failed, {counts['skipped']} skipped")
    sys.exit(lanes.failed)


if __name__ == "__main__":
    main()
