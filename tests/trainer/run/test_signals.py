"""Signals as requests to stop, where Python lets them be handled."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from xtts.trainer.run.signals import stop_requests


@pytest.fixture(autouse=True)
def without_nohup():
    """SIGHUP as a terminal leaves it, for the tests and the processes that they start."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_is_noted_and_the_handler_before_comes_back(number):
    before = signal.getsignal(number)
    with stop_requests() as received:
        assert signal.getsignal(number) is not before
        os.kill(os.getpid(), number)
        assert received == [number.name]
    assert signal.getsignal(number) is before


@pytest.mark.parametrize(("trap", "received"), [("", "SIGHUP"), ("trap '' HUP; ", "")])
def test_a_terminal_that_closes_is_a_request_unless_that_is_ignored(tmp_path, trap, received):
    code = "import os, signal, sys\nfrom xtts.trainer.run.signals import stop_requests\n"
    code += "with stop_requests() as received:\n    print('ready', file=sys.stderr, flush=True)\n"
    code += "    sys.stdin.read()\n    os.kill(os.getpid(), signal.SIGHUP)\n"
    code += "    received and print('saved', flush=True)\n    open(sys.argv[1], 'w').write(' '.join(received))\n"
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        ["sh", "-c", f'{trap}exec "$@"', "sh", sys.executable, "-c", code, tmp_path / "received"],
        stdin=subprocess.PIPE, stdout=theirs, stderr=subprocess.PIPE,
    )
    os.close(theirs)
    assert process.stderr.readline() == b"ready\n"
    os.close(ours)  # to print there fails from now on
    process.communicate()
    assert (process.returncode, (tmp_path / "received").read_text()) == (0, received)


def test_outside_the_main_thread_signals_are_left_alone():
    handler, seen = signal.getsignal(signal.SIGTERM), []

    def work():
        with stop_requests() as received:
            seen.append((received, signal.getsignal(signal.SIGTERM)))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [([], handler)]
