"""Signals as requests to stop, where Python lets them be handled."""

import os
import signal
import threading

import pytest

from xtts.trainer.run.signals import stop_requests


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_is_noted_and_the_handler_before_comes_back(number):
    before = signal.getsignal(number)
    with stop_requests() as received:
        assert signal.getsignal(number) is not before
        os.kill(os.getpid(), number)
        assert received == [number.name]
    assert signal.getsignal(number) is before


def test_outside_the_main_thread_signals_are_left_alone():
    handler, seen = signal.getsignal(signal.SIGTERM), []

    def work():
        with stop_requests() as received:
            seen.append((received, signal.getsignal(signal.SIGTERM)))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [([], handler)]
