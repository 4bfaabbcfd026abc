"""XLA's caches are kept apart for machines whose compiled code differs; TensorFlow can share a GPU's memory."""

import os
import subprocess
import sys

import pytest

from xtts.shared.errors import LockstepError
from xtts.trainer.system import tensorflow_import as module
from xtts.trainer.system.tensorflow_import import enable_compile_cache, machine_digest, tensorflow_import

COMPILED = "import tensorflow as tf; print(int(tf.function(lambda x: x + 1, jit_compile=True)(tf.constant(2))))"


@pytest.fixture
def with_gpu(monkeypatch, tmp_path):
    """A GPU as the kernel lists it, and a user's cache."""
    (tmp_path / "gpus" / "0000:01").mkdir(parents=True)
    monkeypatch.setattr(module, "GPUS", tmp_path / "gpus")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("TF_XLA_FLAGS")


@pytest.mark.long
def test_what_the_autotuner_finds_is_kept_beside_the_steps(with_gpu, monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_gpu_per_fusion_autotune_cache_dir=/own")
    folder = enable_compile_cache()
    ours, theirs = os.environ["XLA_FLAGS"].split()
    assert ours == f"--xla_gpu_per_fusion_autotune_cache_dir={folder}/autotuned"
    assert theirs.endswith("=/own"), "the last one counts"
    done = subprocess.run([sys.executable, "-c", COMPILED], capture_output=True, text=True, check=False)
    assert done.stdout == "3\n", f"an unknown flag ends the process: {done.stderr}"


def test_without_a_gpu_there_is_no_flag_for_one(with_gpu, monkeypatch, tmp_path):
    monkeypatch.setattr(module, "GPUS", tmp_path / "none")
    monkeypatch.setenv("XLA_FLAGS", "")
    enable_compile_cache()
    assert os.environ["XLA_FLAGS"] == ""


@pytest.mark.parametrize(
    ("shares", "own", "found"), [(True, None, "true"), (True, "false", "false"), (False, None, None)]
)
def test_only_speech_shares_a_gpu_and_the_user_decides_before(shares, own, found, monkeypatch):
    monkeypatch.delenv("TF_FORCE_GPU_ALLOW_GROWTH", raising=False)
    if own is not None:
        monkeypatch.setenv("TF_FORCE_GPU_ALLOW_GROWTH", own)
    with monkeypatch.context() as kept:
        kept.setattr(os, "environ", os.environ.copy())
        with tensorflow_import(compile_cache=False, shares_gpu=shares):
            pass
        assert os.environ.get("TF_FORCE_GPU_ALLOW_GROWTH") == found


def test_a_command_that_trains_says_what_installs_tensorflow(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    with pytest.raises(LockstepError) as caught, tensorflow_import():
        pass
    assert str(caught.value) == "TensorFlow: not installed; pip install 'lockstep-tts[train]'"


def test_compiled_code_is_kept_by_processor_and_gpu(tmp_path):
    def machine(name, flags, *cards):
        proc = tmp_path / name
        for number, card in enumerate(cards):
            folder = proc / "driver" / "nvidia" / "gpus" / f"0000:0{number}"
            folder.mkdir(parents=True)
            (folder / "information").write_text(f"Model: \t\t {card}\nGPU UUID: \t GPU-{name}\n")
        proc.mkdir(exist_ok=True)
        (proc / "cpuinfo").write_text(f"processor\t: 0\ncpu MHz\t: {len(name)}\nflags\t\t: {flags}\n" * 2)
        return machine_digest(proc)

    plain = machine("plain", "fma avx2")
    assert machine("twin", "fma avx2") == plain
    assert machine("third", "fma avx2") == plain
    cards = [machine("a", "fma avx2", "RTX 3060"), machine("b", "fma avx2", "A100"), machine("c", "fma", "A100")]
    assert len({plain, *cards}) == 4
    assert machine("d", "fma avx2", "A100") == cards[1]
    assert machine_digest(tmp_path / "none") != plain
