"""The machine: versions and devices."""

import platform
import subprocess
from importlib import import_module, metadata
from importlib.util import find_spec

import tensorflow as tf

from xtts.trainer.doctor.results import Fact, Findings, Problem
from xtts.trainer.system.device import device_name


def environment() -> Findings:
    """Check what training depends on in the machine."""
    versions = {name: metadata.version(name) for name in ("lockstep-tts", "tensorflow", "keras")}
    packages = ", ".join(f"{name} {version}" for name, version in versions.items())
    python = platform.python_version()
    yield Fact(name="versions", value={**versions, "python": python}, text=f"{packages}, Python {python}")
    yield from _devices()


def driver() -> dict[str, str] | None:
    """Name, driver version and memory (MiB) of the first NVIDIA GPU, from nvidia-smi; None without one."""
    fields = ("name", "driver_version", "memory.total")
    command = ["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"]
    try:
        output = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    values = [value.strip() for value in output.splitlines()[0].split(",")] if output.strip() else []
    return dict(zip(fields, values, strict=True)) if len(values) == len(fields) else None


def _devices() -> Findings:
    build, card = tf.sysconfig.get_build_info(), driver()
    cuda = build.get("cuda_version") if build.get("is_cuda_build") else None
    graphics = f"driver {card['driver_version']}" if card else "no NVIDIA driver"
    yield Fact(name="device", value=device_name(), text=device_name())
    yield Fact(name="cuda", value={"built for": cuda, "driver": card}, text=f"built for {cuda or 'none'}, {graphics}")
    if find_spec("jax"):
        jax = import_module("jax")
        seen = ", ".join(sorted({device.device_kind for device in jax.devices()}))
        yield Fact(
            name="jax", value={"version": jax.__version__, "devices": seen}, text=f"{jax.__version__} sees {seen}"
        )
    if card and not tf.config.list_physical_devices("GPU"):
        yield Problem(
            name="gpu-not-seen",
            what=f"TensorFlow sees no GPU, although {card['name']} is present with driver {card['driver_version']}",
            cause="TensorFlow's CUDA libraries are not installed or do not load",
            remedy="pip install 'lockstep-tts[gpu]' in this environment, or 'lockstep-tts[jax-cuda]' and --runtime jax",
            gain="the steps run on the GPU instead of the CPU",
        )
