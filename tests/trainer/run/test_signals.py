"""Signals as requests to stop, where Python lets them be handled."""

import os
import signal
import threading

from xtts.trainer.run.signals import stop_requests


def test_a_signal_is_noted_and_the_handler_before_comes_back():
    before = signal.getsignal(signal.SIGTERM)
    with stop_requests() as received:
        os.kill(os.getpid(), signal.SIGTERM)
        assert received == ["SIGTERM"]
    assert signal.getsignal(signal.SIGTERM) is before


def test_outside_the_main_thread_signals_are_left_alone():
    handler, seen = signal.getsignal(signal.SIGTERM), []

    def work():
        with stop_requests() as received:
            seen.append((received, signal.getsignal(signal.SIGTERM)))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [([], handler)]
