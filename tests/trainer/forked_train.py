"""`xtts-train` in processes forked from one that has imported TensorFlow, which is a third of what a start costs."""

import multiprocessing
import os
import resource

_SERVER = multiprocessing.get_context("forkserver")
_SERVER.set_forkserver_preload(["xtts.trainer.cli", "xtts.trainer.run.trainer"])


def _main(arguments, screen, largest_file_bytes):
    """The command, as the process of its own that it is; what it says goes into the file `screen`."""
    from xtts.trainer.cli import main

    if largest_file_bytes is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file_bytes,) * 2)
    file = os.open(screen, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(file, 1)
    os.dup2(file, 2)
    main(arguments)


class ForkedTrain:
    """What the tests use of `subprocess.Popen`."""

    def __init__(self, arguments, screen, largest_file_bytes=None):
        self._screen = screen
        details = (arguments, str(screen), largest_file_bytes)
        self._process = _SERVER.Process(target=_main, args=details, daemon=True)
        self._process.start()

    @property
    def returncode(self):
        """The exit code, or None while it runs."""
        return self._process.exitcode

    def poll(self):
        """The exit code, or None while it runs."""
        return self.returncode

    def send_signal(self, number):
        """As `kill -NUMBER` does."""
        os.kill(self._process.pid, number)

    def kill(self):
        """As `kill -9` does."""
        self._process.kill()

    def communicate(self, timeout=None):
        """Wait for its end: ("", what it said)."""
        self._process.join(timeout)
        return "", self._screen.read_text() if self._screen.exists() else ""
