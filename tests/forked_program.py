"""Python programs in processes forked from one that has imported TensorFlow, which is a third of what a start costs."""

import multiprocessing
import multiprocessing.context
import os
import runpy
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from subprocess import PIPE  # noqa: F401 - for who takes this module for `subprocess`


class Following(multiprocessing.context.ForkServerProcess):
    """A forked process that ends with the one that started it, even by `kill -9`."""

    def run(self):
        threading.Thread(target=_end_with_parent, daemon=True).start()
        super().run()


def _end_with_parent():
    multiprocessing.parent_process().join()
    os._exit(1)


class _Server(multiprocessing.context.ForkServerContext):
    Process = Following


SERVER = _Server()
"""`multiprocessing` with such processes."""
SERVER.set_forkserver_preload(["xtts.trainer.cli", "xtts.trainer.run.trainer"])


def _main(line, screens, folder, environment):
    """The program, as the process of its own that it is; its output goes into the files `screens`."""
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    for number, screen in enumerate(screens, 1):
        os.dup2(os.open(screen, os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
    sys.path[:0] = filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))
    if line[0] == "-m":
        sys.argv = line[1:]
        runpy.run_module(line[1], run_name="__main__", alter_sys=True)
    elif line[0] == "-c":
        sys.argv = ["-c", *line[2:]]
        exec(compile(line[1], "<string>", "exec"), {"__name__": "__main__"})
    else:
        sys.argv = line
        sys.path.insert(0, str(Path(line[0]).parent))
        runpy.run_path(line[0], run_name="__main__")


class Started:
    """A started process; it ends with the tests. screen: the file for all it says."""

    def __init__(self, target, arguments, screen, *, daemon=True):
        self._screen = Path(screen)
        self._process = SERVER.Process(target=target, args=arguments, daemon=daemon)
        self._process.start()

    @property
    def screen(self):
        """What it said so far."""
        return self._screen.read_text() if self._screen.exists() else ""

    def poll(self):
        return self._process.exitcode

    returncode = property(poll)

    def send_signal(self, number):
        os.kill(self._process.pid, number)

    def kill(self):
        self._process.kill()

    def wait(self):
        """Its exit code, once it has ended."""
        self._process.join()
        return self.returncode

    def communicate(self):
        """Wait for its end: ("", what it said)."""
        self.wait()
        return "", self.screen


class Forked(Started):
    """A started program, with what the tests use of `subprocess.Popen`.

    line: a Python program and its arguments; `sys.executable` before it is left out.
    """

    def __init__(self, line, screen, err=None, *, cwd=".", env=None, daemon=True):
        line = [*map(str, line)]
        line = line[line[0] == sys.executable :]
        environment, screens = dict(os.environ if env is None else env), (str(screen), str(err or screen))
        super().__init__(_main, (line, screens, str(Path(cwd).absolute()), environment), screen, daemon=daemon)


def run(line, *, cwd=".", env=None, stdout=None, check=False, **_):
    """`subprocess.run(line, text=True, capture_output=True)`; what goes to stderr is shown, too."""
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        process = Forked(line, out, err, cwd=cwd, env=env, daemon=False)
        process.communicate()
        said = (file.read_text() if file.exists() else "" for file in (out, err))
        done = subprocess.CompletedProcess(line, process.returncode, *said)
        print(done.stderr, file=sys.stderr)
    if check:
        done.check_returncode()
    return done
