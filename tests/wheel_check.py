"""Every command of an installed wheel, where the repository is not: `make wheel-check`, and a smaller run in the tests.

As a program it installs the wheel with its dependencies, which it downloads, into an empty environment.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGED = ("configs", "precompute", "shared", "trainer", "voices")
CACHE = ("shapes.buckets=1", "split.validation_fraction=0.1")
MICRO = (
    *CACHE, "model.text_width=16", "model.text_blocks=1", "model.duration_width=16", "model.decoder_width=16",
    "model.decoder_blocks=1", "model.decoder_levels=[]", "training.batch_size=4", "training.steps_per_call=1",
)


def build_wheel(folder: Path) -> Path:
    """The wheel of this tree, in `folder`; built from a copy, so that nothing is left in the tree."""
    source = folder / "source"
    for stage in PACKAGED:
        shutil.copytree(ROOT / stage, source / stage, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(source)]
    subprocess.run(command, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def install(wheel: Path, environment: Path, *options: str, extras: str = "") -> Path:
    """Make an environment without pip, install the wheel with this one's pip, and return its Python."""
    venv.create(environment, symlinks=True)
    python = environment / "bin" / "python"
    wanted = f"{wheel}[{extras}]" if extras else str(wheel)
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", *options, wanted]
    subprocess.run(command, check=True)
    return python


def use_commands(python: Path, folder: Path, *formats: str, clips: int, steps: int) -> None:
    """From a sample corpus to one sentence of a micro model, and its exports, in a new folder."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}

    def run(command: str, *arguments: object, sets: tuple[str, ...] = (), code: int = 0) -> str:
        line = [python.parent / command, *map(str, arguments), *(part for one in sets for part in ("--set", one))]
        done = subprocess.run(line, cwd=folder, env=environment, text=True, capture_output=True)
        assert done.returncode == code, f"{command} {arguments} ended with {done.returncode}:\n{done.stderr}"
        return done.stdout + done.stderr

    folder.mkdir()
    found = run("python", "-c", "import xtts.shared; print(xtts.shared.__file__)").strip()
    assert Path(found).is_relative_to(python.parents[1]), "the repository was imported, not the wheel"
    run("xtts-precompute", "sample-corpus", "corpus", "--clips", clips, "--workers", 1)
    run("xtts-precompute", "build", "--data", "corpus", "--workers", 1, sets=CACHE)
    run("xtts-train", "--steps", steps, "--out", "runs/micro", sets=MICRO)
    run("xtts-synth", "--ckpt", "runs/micro", "--nfe", 2, "-o", "out.wav", "Hello there.")
    assert (folder / "out.wav").stat().st_size > 1000, "out.wav holds no sound"
    for name in formats:
        run("xtts-synth", "export", "--ckpt", "runs/micro", name, "--format", name)
        assert any((folder / name).iterdir()), f"{name} is empty"
    assert "--port" in run("xtts-synth", "serve", "--help")
    assert "xtts-precompute build --cache none" in run("xtts-train", "--cache", "none", code=2)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="lockstep-wheel-") as made:
        folder = Path(made)
        python = install(build_wheel(folder / "wheel"), folder / "environment", extras="phonemes,serve,train")
        use_commands(python, folder / "work", "safetensors", "onnx", clips=40, steps=10)
    print("the wheel works where the repository is not")
