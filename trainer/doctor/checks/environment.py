"""The machine: versions, devices, XLA, and the disk that holds the cache."""

import os
import platform
import shutil
import subprocess
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import tensorflow as tf

from xtts.trainer.doctor.finding import Fact, Finding, Result
from xtts.trainer.system.device import device_name

_SAMPLE_BYTES = 2 << 20
"""Bytes read from every shard: hundreds of shards take seconds."""
_TIMES_SLOWER, _LOST_SECONDS = 4.0, 0.25
"""A shard is slow if it takes this many times as long as the others and this many more seconds to read in full."""
_SUSPECTS, _ROUNDS = 3, 3
"""Most shards (the slowest) to read again, and how often."""
_DROPS_PAGES = hasattr(os, "posix_fadvise")
"""Whether the page cache can drop a file, so that it is read from the disk."""
_ENOUGH_DISK_BYTES = 1 << 30
"""Checkpoints and curves of a run need about this much."""
_CPU_FEATURES = ("avx2", "fma", "avx512f", "avx512_bf16", "amx_bf16", "asimd", "sve")


class Sample(NamedTuple):
    """The first `_SAMPLE_BYTES` of a file, or all of a smaller one."""

    bytes: int
    seconds: float

    @property
    def speed(self) -> float:
        """Bytes per second."""
        return self.bytes / self.seconds


@dataclass(frozen=True, kw_only=True)
class ReadSpeed:
    """Samples of the shards and how fast they were read."""

    samples: dict[Path, Sample]
    cold: bool
    """True if the page cache dropped the files first."""

    @property
    def bytes(self) -> int:
        """Size of all samples."""
        return sum(sample.bytes for sample in self.samples.values())

    @property
    def bytes_per_second(self) -> float:
        """Speed over all samples."""
        return self.bytes / max(sum(sample.seconds for sample in self.samples.values()), 1e-9)


def environment(cache: Path, speed: ReadSpeed) -> Result:
    """Everything about the machine that training depends on."""
    versions = {name: metadata.version(name) for name in ("lockstep-tts", "tensorflow", "keras")}
    named = ", ".join(f"{name} {version}" for name, version in versions.items())
    facts = [Fact(name="versions", value={**versions, "python": platform.python_version()},
                  text=f"{named}, Python {platform.python_version()}")]  # fmt: skip
    findings = []
    for found, some in (_devices(), _xla(), _disk(cache, speed), ([], _slow_shards(cache, speed))):
        facts += found
        findings += some
    return facts, findings


def driver() -> dict[str, str] | None:
    """Name, driver version and memory (MiB) of the first NVIDIA GPU, from nvidia-smi; None without one."""
    fields = ("name", "driver_version", "memory.total")
    command = ["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    values = [value.strip() for value in answer.splitlines()[0].split(",")] if answer.strip() else []
    return dict(zip(fields, values, strict=True)) if len(values) == len(fields) else None


def cpu_features() -> list[str]:
    """SIMD extensions that speed up a matrix product, where the system reports them."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    flags = next((set(line.split()) for line in lines if line.startswith(("flags", "Features"))), set())
    return [feature for feature in _CPU_FEATURES if feature in flags]


def _devices() -> Result:
    build, gpus, card = tf.sysconfig.get_build_info(), tf.config.list_physical_devices("GPU"), driver()
    cuda = build.get("cuda_version") if build.get("is_cuda_build") else None
    # As in TensorFlow: the variable overrides the program's setting, and only these spellings count.
    forced = {"true": True, "false": False}.get(os.environ.get("TF_FORCE_GPU_ALLOW_GROWTH", ""))
    chosen = tf.config.experimental.get_memory_growth
    growth = {gpu.name: bool(chosen(gpu)) if forced is None else forced for gpu in gpus}
    features = cpu_features()
    graphics = f"driver {card['driver_version']}" if card else "no NVIDIA driver"
    facts = [
        Fact(name="device", value=device_name(), text=device_name()),
        Fact(name="cuda", value={"built for": cuda, "driver": card}, text=f"built for {cuda or 'none'}, {graphics}"),
        Fact(name="cpu features", value=features, text=", ".join(features) or "not reported by this system"),
    ]
    if gpus:
        off = "off: TensorFlow takes all memory of the GPU at once; TF_FORCE_GPU_ALLOW_GROWTH=true switches it on"
        text = "on" if all(growth.values()) else off
        facts.append(Fact(name="memory growth", value=growth, text=text))
    if gpus or not card:
        return facts, []
    return facts, [
        Finding(
            name="gpu-not-seen",
            section="environment",
            what=f"TensorFlow sees no GPU, although {card['name']} is present with driver {card['driver_version']}",
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
    cause = "driver, CUDA libraries or XLA's flags"
    return [fact], [Finding(name="xla-fails", section="environment", what=what, cause=cause, fix=fix)]


def _disk(cache: Path, speed: ReadSpeed) -> Result:
    free = shutil.disk_usage(cache).free
    source = "from the disk" if speed.cold else "possibly from memory: this system cannot drop cached pages"
    files = {str(path.relative_to(cache)): sample.speed for path, sample in speed.samples.items()}
    read = {"bytes_per_second": speed.bytes_per_second, "bytes": speed.bytes, "cold": speed.cold, "files": files}
    facts = [
        Fact(name="disk", value={"free_bytes": free, **read},
             text=f"{free / 2**30:,.1f} GiB free; cache read at {speed.bytes_per_second / 2**20:,.0f} MiB/s "
                  f"({speed.bytes / 2**20:.1f} MiB of {len(files)} shards, {source})"),
    ]  # fmt: skip
    if free >= _ENOUGH_DISK_BYTES:
        return facts, []
    what = f"{free / 2**20:,.0f} MiB left on the disk of {cache}"
    cause = "a run keeps several checkpoints"
    finding = Finding(name="disk-full", section="environment", what=what, cause=cause, fix="free some space")
    return facts, [finding]


def read_speed(files: Iterable[Path]) -> ReadSpeed:
    """Read a sample of every file, bypassing the page cache where possible."""
    return ReadSpeed(samples={path: _read(path) for path in files}, cold=_DROPS_PAGES)


def _read(path: Path) -> Sample:
    with open(path, "rb", buffering=0) as file:
        if _DROPS_PAGES:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        began = time.perf_counter()
        size = len(file.read(_SAMPLE_BYTES))
        return Sample(size, max(time.perf_counter() - began, 1e-9))


def _slow_shards(cache: Path, speed: ReadSpeed) -> list[Finding]:
    """Shards that are still slow when read again in turn with a typical one, so that a busy moment does not count."""
    samples = speed.samples
    typical = sorted(samples, key=lambda path: samples[path].speed)[len(samples) // 2]
    suspects = sorted(samples, key=lambda path: _lost_seconds(path, samples, typical), reverse=True)[:_SUSPECTS]
    suspects = [path for path in suspects if _lost_seconds(path, samples, typical) > _LOST_SECONDS]
    if not suspects:
        return []
    rounds = [{path: _read(path) for path in (*suspects, typical)} for _ in range(_ROUNDS)]
    best = {path: min((again[path] for again in rounds), key=lambda sample: sample.seconds) for path in rounds[0]}
    lost = {path: _lost_seconds(path, best, typical) for path in suspects}
    slow = [path for path in suspects if lost[path] > _LOST_SECONDS]
    if not slow:
        return []
    named = ", ".join(f"{path.relative_to(cache)} at {best[path].speed / 2**20:.2g} MiB/s" for path in slow)
    return [
        Finding(
            name="slow-shard",
            section="environment",
            what=f"slow to read: {named}; a typical shard is read at {best[typical].speed / 2**20:,.0f} MiB/s",
            cause="its disk is throttled, failing in places, or slower than the disk of the others",
            fix=f"copy {cache} to another disk, and check the health of this one",
            gain=f"{sum(lost[path] for path in slow):.1f} s less reading in every epoch that reads from the disk",
        )
    ]


def _lost_seconds(path: Path, samples: Mapping[Path, Sample], typical: Path) -> float:
    """Extra seconds to read the whole shard, against a typical shard's speed; 0 unless it is several times slower."""
    sample, usual = samples[path], samples[typical]
    # Ignore the latency of a small sample, and the extra bytes of a larger one.
    expected = max(usual.seconds, sample.bytes / usual.speed)
    if sample.seconds < _TIMES_SLOWER * expected:
        return 0.0
    return (sample.seconds - expected) * path.stat().st_size / sample.bytes
