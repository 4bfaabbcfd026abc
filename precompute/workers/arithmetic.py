"""Settings on which the last digits of a worker's results depend: environment variables and versions of packages.

numpy reads the environment when it is imported, so it has to be set before. `precompute/features/mel_check.py` checks
the effect.
"""

from importlib.metadata import version
from pathlib import Path

_ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
"""One thread always sums in the same order, and each core has a process anyway."""
_KERNELS = ("OPENBLAS_CORETYPE", "Haswell")
"""OpenBLAS chooses its kernels by the processor, and each has its own order of summation. These run on every x86
processor with AVX2 and FMA.
"""
_PROCESSOR = Path("/proc/cpuinfo")


def worker_environment() -> dict[str, str]:
    """Return the variables to set for a worker, with the kernels only if the processor is known to run them."""
    kernels = [_KERNELS] if _has_avx2() else []
    return dict([*((name, "1") for name in _ONE_THREAD), *kernels])


def _has_avx2() -> bool:
    """Whether this is an x86 processor with AVX2 and FMA; False if the system does not tell."""
    try:
        lines = _PROCESSOR.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return False
    flags = next((line.split() for line in lines if line.startswith("flags")), [])
    return {"avx2", "fma"} <= set(flags)


def installed_versions() -> dict[str, str]:
    """Return the version of each package on which results depend."""
    return {name: version(name) for name in ("lockstep-tts", "numpy", "scipy", "soundfile", "soxr")}
