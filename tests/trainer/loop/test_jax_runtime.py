"""Steps that JAX runs: the numbers of TensorFlow, and its checkpoints."""

import shutil

import numpy as np
import pytest
import tensorflow as tf
from held_runs import assert_same_end, close

from xtts.trainer.loop.jax_runtime import JaxRuntime
from xtts.trainer.loop.programs import export_programs

pytest.importorskip("jax")


@pytest.fixture
def counter():
    """A runtime with a program `add` that adds its input to its state, 1 and 2, and returns twice the sum."""
    total = tf.Variable([1.0, 2.0])

    @tf.function(input_signature=[tf.TensorSpec([2])], jit_compile=True, autograph=False)
    def add(amount):
        return total.assign_add(amount).read_value() * 2.0

    add.get_concrete_function()
    runtime = JaxRuntime(export_programs({"add": add}, {"total": total})[0], {"total": total.numpy()})
    runtime.compile("add")
    return runtime


def test_the_state_stays_on_the_device_between_calls(counter):
    for expected in ([4.0, 6.0], [6.0, 8.0]):
        (doubled,) = counter.call("add", np.ones(2, np.float32))
        assert np.asarray(doubled).tolist() == expected
    assert counter.state()["total"].tolist() == [3.0, 4.0]


def test_a_compiled_program_is_kept_for_the_next_start(counter, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    counter.compile("add")
    (kept,) = tmp_path.glob("lockstep/jax-*/*")
    written = kept.stat().st_mtime_ns
    counter.compile("add")
    assert kept.stat().st_mtime_ns == written, "compiled again"
    kept.write_bytes(b"damaged")
    counter.compile("add")
    assert len(kept.read_bytes()) > 100
    assert np.asarray(counter.call("add", np.ones(2, np.float32))[0]).tolist() == [4.0, 6.0]


@pytest.mark.long
def test_runs_by_jax_and_by_tensorflow_are_one(finished_run, run_train, read_steps, tmp_path):
    whole, by_jax = finished_run[0], tmp_path / "jax"
    screen = run_train(by_jax, "training.runtime=jax").succeeded()
    assert "by JAX" in screen
    close(read_steps(by_jax, "validation"), read_steps(whole, "validation"))
    assert_same_end(by_jax, whole)
    for first, runtime in ((whole, "jax"), (by_jax, "tensorflow")):
        part = shutil.copytree(first, tmp_path / f"then-{runtime}")
        resume = ["--resume", part / "checkpoints" / "step-8"]
        out = run_train(part, f"training.runtime={runtime}", more=resume).succeeded()
        assert "step 8 of 12" in out
        close(read_steps(part), read_steps(whole))
        assert_same_end(part, whole)


@pytest.mark.long
def test_bfloat16_trains_by_jax(run_train, read_steps, tmp_path):
    for runtime in ("tensorflow", "jax"):
        settings = ["training.mixed_precision=bfloat16", "training.steps=4", f"training.runtime={runtime}"]
        run_train(tmp_path / runtime, *settings).succeeded()
    close(read_steps(tmp_path / "jax"), read_steps(tmp_path / "tensorflow"), 3e-2)
