"""Steps that JAX runs: the numbers of TensorFlow, its checkpoints, and inputs that are checked."""

import shutil

import numpy as np
import pytest
import tensorflow as tf

from xtts.shared.errors import LockstepError
from xtts.trainer.loop.jax_loops import TracedRuntime
from xtts.trainer.loop.programs import export_programs
from xtts.trainer.stored.checkpoint import load_arrays

pytest.importorskip("jax")


@pytest.fixture
def counter():
    """(variable, runtime) with a program `add` that adds its input to the variable and returns the sum."""
    total = tf.Variable([1.0, 2.0])

    @tf.function(input_signature=[tf.TensorSpec([2])], jit_compile=True, autograph=False)
    def add(amount):
        return total.assign_add(amount).read_value() * 2.0

    add.get_concrete_function()
    runtime = TracedRuntime(*export_programs({"add": add}, {"total": total}))
    runtime.compile("add")
    return total, runtime


def test_the_state_stays_on_the_device_until_it_is_pulled(counter):
    total, runtime = counter
    for expected in ([4.0, 6.0], [6.0, 8.0]):
        (doubled,) = runtime.call("add", np.ones(2, np.float32))
        assert np.asarray(doubled).tolist() == expected
    assert total.numpy().tolist() == [1.0, 2.0]
    runtime.pull()
    assert total.numpy().tolist() == [3.0, 4.0]


def test_a_compiled_program_is_kept_for_the_next_start(counter, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    _, runtime = counter
    runtime.compile("add")
    (kept,) = tmp_path.glob("lockstep/jax-*/*")
    written = kept.stat().st_mtime_ns
    runtime.compile("add")
    assert kept.stat().st_mtime_ns == written, "compiled again"
    kept.write_bytes(b"damaged")
    runtime.compile("add")
    assert len(kept.read_bytes()) > 100
    assert np.asarray(runtime.call("add", np.ones(2, np.float32))[0]).tolist() == [4.0, 6.0]


@pytest.mark.parametrize("wrong", [np.ones(2, np.int32), np.ones(2), np.ones(3, np.float32)])
def test_a_wrong_type_or_shape_is_refused(counter, wrong):
    with pytest.raises(LockstepError, match=r"add: inputs \[.*\], expected \[\('float32', \(2,\)\)\]"):
        counter[1].call("add", wrong)


def close(ours, theirs, limit):
    for mine, other in zip(ours, theirs, strict=True):
        for name in other.keys() - {"split"}:
            assert mine[name] == pytest.approx(other[name], rel=limit, abs=limit), name


def test_a_run_by_jax_is_one_by_tensorflow_and_either_continues_the_other(
    finished_run, run_train, read_steps, tmp_path
):
    whole, by_jax = finished_run[0], tmp_path / "jax"
    code, screen, err = run_train(by_jax, "training.runtime=jax")
    assert code == 0, err
    assert "by JAX" in screen
    close(read_steps(by_jax), read_steps(whole), 1e-4)
    close(read_steps(by_jax, "validation"), read_steps(whole, "validation"), 1e-4)
    assert {path.name for path in (by_jax / "checkpoints").iterdir()} == {
        path.name for path in (whole / "checkpoints").iterdir()
    }
    for first, runtime in ((whole, "jax"), (by_jax, "tensorflow")):
        part = shutil.copytree(first, tmp_path / f"then-{runtime}")
        resume = ["--resume", part / "checkpoints" / "step-8"]
        code, out, err = run_train(part, f"training.runtime={runtime}", more=resume)
        assert code == 0, err
        assert "step 8 of 12" in out
        close(read_steps(part), read_steps(whole), 1e-4)
        ours, theirs = (load_arrays(folder / "checkpoints" / "step-12") for folder in (part, whole))
        for name, array in theirs.items():
            np.testing.assert_allclose(ours[name], array, atol=1e-3, err_msg=name)


@pytest.mark.long
def test_a_vocoder_and_bfloat16_train_by_jax(crop_cache, run_train, read_steps, tmp_path):
    pairs = {}
    for runtime in ("tensorflow", "jax"):
        shared = [f"training.runtime={runtime}", "training.steps=4", "training.samples_every=null"]
        run_train(tmp_path / f"b-{runtime}", *shared, "training.mixed_precision=bfloat16")
        small = [
            "audio.crop_frames=32", "audio.crop_pitch=0", "vocoder.width=16", "vocoder.blocks=1", "vocoder.expansion=2",
            "vocoder.discriminator_width=8",
        ]  # fmt: skip
        more = ["--config", "vocoder"]
        code, _, err = run_train(tmp_path / f"v-{runtime}", *shared, *small, cache=crop_cache, more=more)
        assert code == 0, err
        pairs[runtime] = [read_steps(tmp_path / f"{kind}-{runtime}") for kind in "bv"]
    for ours, theirs, limit in zip(pairs["jax"], pairs["tensorflow"], (3e-2, 1e-3), strict=True):
        close(ours, theirs, limit)
