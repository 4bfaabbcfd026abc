"""The machine: versions, devices, XLA, and the disk that holds the cache."""

import os
import platform
import shutil
import subprocess
import time
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import tensorflow as tf

from xtts.trainer.device import device_name
from xtts.trainer.doctor.finding import Fact, Finding, Result

_READ_BYTES = 64 << 20
_CHUNK_BYTES = 4 << 20
_ENOUGH_DISK_BYTES = 1 << 30
"""Checkpoints and curves of a run need about that much."""
_CPU_FEATURES = ("avx2", "fma", "avx512f", "avx512_bf16", "amx_bf16", "asimd", "sve")


class ReadSpeed(NamedTuple):
    """What reading files gave."""

    bytes_per_second: float
    bytes: int
    cold: bool
    """True when the system's memory was told to drop the files first."""


def environment(cache: Path, speed: ReadSpeed) -> Result:
    """Everything about the machine that training depends on."""
    versions = {name: metadata.version(name) for name in ("lockstep-tts", "tensorflow", "keras")}
    named = ", ".join(f"{name} {version}" for name, version in versions.items())
    facts = [Fact(name="versions", value={**versions, "python": platform.python_version()},
                  text=f"{named}, Python {platform.python_version()}")]  # fmt: skip
    findings = []
    for found, some in (_devices(), _xla(), _disk(cache, speed)):
        facts += found
        findings += some
    return facts, findings


def driver() -> dict[str, str] | None:
    """Name, driver version and memory (MiB) of the first NVIDIA GPU, as nvidia-smi says; None without one."""
    fields = ("name", "driver_version", "memory.total")
    command = ["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    values = [value.strip() for value in answer.splitlines()[0].split(",")] if answer.strip() else []
    return dict(zip(fields, values, strict=True)) if len(values) == len(fields) else None


def cpu_features() -> list[str]:
    """Vector units that matter to a matrix product, where the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    flags = next((set(line.split()) for line in lines if line.startswith(("flags", "Features"))), set())
    return [feature for feature in _CPU_FEATURES if feature in flags]


def _devices() -> Result:
    build, gpus, card = tf.sysconfig.get_build_info(), tf.config.list_physical_devices("GPU"), driver()
    cuda = build.get("cuda_version") if build.get("is_cuda_build") else None
    # As TensorFlow decides: the variable goes before the program's own choice, and other spellings are none.
    forced = {"true": True, "false": False}.get(os.environ.get("TF_FORCE_GPU_ALLOW_GROWTH", ""))
    chosen = tf.config.experimental.get_memory_growth
    growth = {gpu.name: bool(chosen(gpu)) if forced is None else forced for gpu in gpus}
    features = cpu_features()
    graphics = f"driver {card['driver_version']}" if card else "no NVIDIA driver"
    facts = [
        Fact(name="device", value=device_name(), text=device_name()),
        Fact(name="cuda", value={"built for": cuda, "driver": card}, text=f"built for {cuda or 'none'}, {graphics}"),
        Fact(name="cpu features", value=features, text=", ".join(features) or "not told by this system"),
    ]
    if gpus:
        off = "off: TensorFlow takes all memory of the GPU at once; TF_FORCE_GPU_ALLOW_GROWTH=true switches it on"
        text = "on" if all(growth.values()) else off
        facts.append(Fact(name="memory growth", value=growth, text=text))
    if gpus or not card:
        return facts, []
    return facts, [
        Finding(
            section="environment",
            what=f"TensorFlow sees no GPU, though {card['name']} is here with driver {card['driver_version']}",
            cause="TensorFlow's CUDA libraries are not installed or do not load",
            fix="pip install 'lockstep-tts[gpu]' in this environment",
            gain="the steps run on the GPU instead of the CPU",
        )
    ]


def _xla() -> Result:
    began = time.perf_counter()
    try:
        square = tf.function(lambda x: tf.reduce_sum(tf.linalg.matmul(x, x)), jit_compile=True)
        works, problem = float(square(tf.ones([64, 64]))) == 64.0**3, "a wrong product"
    except tf.errors.OpError as error:
        works, problem = False, error.message.splitlines()[0][:200]
    seconds = time.perf_counter() - began
    text = f"works: a small product compiled and run in {seconds:.2f} s" if works else f"fails: {problem}"
    fact = Fact(name="xla", value={"works": works, "seconds": seconds}, text=text)
    if works:
        return [fact], []
    fix = f"check TF_XLA_FLAGS and XLA_FLAGS ({os.environ.get('TF_XLA_FLAGS', '')} {os.environ.get('XLA_FLAGS', '')})"
    what = f"XLA does not compile here: {problem}"
    return [fact], [Finding(section="environment", what=what, cause="driver, CUDA libraries or XLA's flags", fix=fix)]


def _disk(cache: Path, speed: ReadSpeed) -> Result:
    free = shutil.disk_usage(cache).free
    source = "from the disk" if speed.cold else "perhaps from memory: this system cannot drop cached pages"
    facts = [
        Fact(name="disk", value={"free_bytes": free, **speed._asdict()},
             text=f"{free / 2**30:,.1f} GiB free; cache read at {speed.bytes_per_second / 2**20:,.0f} MiB/s "
                  f"({speed.bytes / 2**20:.1f} MiB {source})"),
    ]  # fmt: skip
    if free >= _ENOUGH_DISK_BYTES:
        return facts, []
    what = f"{free / 2**20:,.0f} MiB left on the disk of {cache}"
    finding = Finding(section="environment", what=what, cause="a run keeps several checkpoints", fix="free some space")
    return facts, [finding]


def read_speed(files: Iterable[Path], limit_bytes: int = _READ_BYTES) -> ReadSpeed:
    """Read up to `limit_bytes` of the files, past the system's memory where it allows that."""
    read, seconds, cold = 0, 0.0, hasattr(os, "posix_fadvise")
    for path in files:
        with open(path, "rb", buffering=0) as file:
            if cold:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            began = time.perf_counter()
            while read < limit_bytes and (chunk := file.read(_CHUNK_BYTES)):
                read += len(chunk)
            seconds += time.perf_counter() - began
        if read >= limit_bytes:
            break
    return ReadSpeed(read / max(seconds, 1e-9), read, cold)
