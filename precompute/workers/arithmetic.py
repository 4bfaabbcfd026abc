"""What decides the last digits that a worker computes: its environment, and versions of packages.

numpy reads the environment when it is loaded, so it has to be set before. `precompute/features/mel_check.py` proves
what came of it.
"""

from importlib.metadata import version
from pathlib import Path

_ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
"""A process a core is enough, and one thread sums in one order."""
_KERNELS = ("OPENBLAS_CORETYPE", "Haswell")
"""OpenBLAS chooses its kernels by the processor, and each sums in an order of its own. These run on every x86 processor
with AVX2 and FMA.
"""
_PROCESSOR = Path("/proc/cpuinfo")


def worker_environment() -> dict[str, str]:
    """Variables to set for a worker; kernels are named only where the processor is known to run them."""
    kernels = [_KERNELS] if _has_avx2() else []
    return dict([*((name, "1") for name in _ONE_THREAD), *kernels])


def _has_avx2() -> bool:
    """Whether this is an x86 processor with AVX2 and FMA; False where the system does not say."""
    try:
        lines = _PROCESSOR.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return False
    flags = next((line.split() for line in lines if line.startswith("flags")), [])
    return {"avx2", "fma"} <= set(flags)


def installed_versions() -> dict[str, str]:
    """Package to its version in this process."""
    return {name: version(name) for name in ("lockstep-tts", "numpy", "scipy", "soundfile", "soxr")}
