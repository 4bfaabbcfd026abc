"""Steps are compiled ahead in a thread, once each, and found again by the loop and by the next run."""

import os
import sys
import threading

import pytest

from xtts.trainer.loop.compiler import Compiler


@pytest.fixture
def compiler_on(monkeypatch):
    """`compiler_on(cores)`."""

    def make(cores):
        monkeypatch.setattr("xtts.trainer.loop.compiler.usable_cores", lambda: cores)
        return Compiler()

    return make


def test_steps_are_compiled_in_order_and_what_was_not_begun_is_dropped(compiler_on):
    begun, go_on, done = threading.Event(), threading.Event(), []

    def fail():
        raise ValueError("too large")

    def wait():
        begun.set()
        go_on.wait()
        done.append("a")

    with compiler_on(1) as compiler:
        compiler.submit("large", fail)
        compiler.submit("a", wait)
        compiler.submit("b", lambda: done.append("b"))
        begun.wait()
        threading.Timer(0.1, go_on.set).start()
    assert done == ["a"]
    assert compiler.step("a").result() >= 0.1
    assert compiler.step("b").cancelled()
    with pytest.raises(ValueError, match="too large"):  # where the step is asked for
        compiler.step("large").result()


def test_a_step_is_compiled_on_every_two_cores_while_others_go_first(compiler_on):
    together = threading.Barrier(3)  # broken by a thread that waits alone
    own = os.getpriority(os.PRIO_PROCESS, 0)
    with compiler_on(6) as compiler:
        for name in "abc":
            compiler.submit(name, lambda: together.wait())
        for name in "abc":
            compiler.step(name).result()
        niceness = []
        compiler.submit("d", lambda: niceness.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id())))
        compiler.step("d").result()
    assert sys.platform != "linux" or niceness == [min(own + 10, 19)]
    assert os.getpriority(os.PRIO_PROCESS, 0) == own


@pytest.mark.long
def test_every_step_is_compiled_once_and_a_resumed_run_compiles_none(start_train, one_shape_cache, tmp_path):
    def compiled_files(*more):
        cache = tmp_path / "xla"
        # Here XLA compiles as it does for users, not as in the other tests.
        environment = {k: v for k, v in os.environ.items() if not k.endswith("XLA_FLAGS")}
        environment["XDG_CACHE_HOME"] = str(cache)
        process = start_train(
            tmp_path / "run", "shapes.buckets=1", "training.steps=2", cache=one_shape_cache, more=more, env=environment
        )
        errors = process.communicate()[1]
        assert process.returncode == 0, errors
        return sorted(path.name for path in cache.rglob("xla_compile_cache*"))

    first = compiled_files()
    training, validation, update, averages = 1, 1, 1, 1
    assert len(first) == training + validation + update + averages
    assert compiled_files("--resume", "--steps", "4") == first
