"""Every command of an installed wheel, where the repository is not: `make wheel-check`, and a smaller run in the tests.

As a program it builds the wheel, installs it with its dependencies into an empty environment, and runs the commands in
an empty folder. It downloads all of TensorFlow.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGED = ("configs", "precompute", "shared", "trainer")
EXTRAS = "demo,onnx,serve"
SETTINGS = ("shapes.buckets=1", "split.validation_fraction=0.1")
MICRO = (
    "text_width=16", "text_blocks=1", "duration_width=16", "decoder_width=16", "decoder_blocks=1", "decoder_levels=[]",
)  # fmt: skip
TRAINING = ("training.batch_size=4", "training.steps_per_call=1", "training.log_every=1")


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


class Installed:
    """The commands of an environment, run in a folder where nothing else is."""

    def __init__(self, python: Path, folder: Path) -> None:
        self.python, self.folder = python, folder
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}

    def run(self, command: str, *arguments: object, code: int = 0) -> str:
        """Run a command; what it printed. An `AssertionError` where it ends with another code."""
        done = subprocess.run(
            [self.python.parent / command, *map(str, arguments)], cwd=self.folder, env=self.environment, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600,
        )  # fmt: skip
        assert done.returncode == code, f"{command} {arguments} ended with {done.returncode}:\n{done.stdout}"
        return done.stdout

    def module_file(self) -> Path:
        """The file that `xtts.shared` is imported from."""
        return Path(self.run("python", "-c", "import xtts.shared; print(xtts.shared.__file__)").strip())

    def train_a_voice(self, *, clips: int, steps: int) -> Path:
        """Sample corpus, cache, `steps` steps of a micro model, one sentence: the run folder."""
        build = [part for setting in SETTINGS for part in ("--set", setting)]
        small = [part for setting in (*(f"model.{name}" for name in MICRO), *TRAINING) for part in ("--set", setting)]
        self.run("xtts-precompute", "sample-corpus", "corpus", "--clips", clips, "--max-seconds", 3, "--workers", 1)
        self.run("xtts-precompute", "build", "--data", "corpus", "--workers", 1, *build)
        self.run("xtts-train", "--steps", steps, "--out", "runs/micro", *build, *small)
        self.run("xtts-synth", "--ckpt", "runs/micro", "--steps", 2, "-o", "out.wav", "Hello there.")
        assert (self.folder / "out.wav").stat().st_size > 1000, "out.wav holds no sound"
        return self.folder / "runs" / "micro"

    def export(self, run: Path, *formats: str) -> None:
        """Export the run in each format, into a folder of that name."""
        for name in formats:
            self.run("xtts-synth", "export", "--ckpt", run, name, "--format", name)
            assert any((self.folder / name).iterdir()), f"{name} is empty"


def main(folder: Path) -> None:
    """Build, install with downloads, and run everything in `folder`, which must not exist yet."""
    (folder / "work").mkdir(parents=True)
    python = install(build_wheel(folder / "wheel"), folder / "environment", extras=EXTRAS)
    commands = Installed(python, folder / "work")
    assert commands.module_file().is_relative_to(folder), "the repository was imported, not the wheel"
    run = commands.train_a_voice(clips=40, steps=10)
    commands.export(run, "safetensors", "saved-model", "onnx")
    print("the wheel works where the repository is not")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="lockstep-wheel-") as made:
        main(Path(made) / "check")
