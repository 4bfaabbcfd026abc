"""Settings on which the last digits of a worker's results depend: environment variables and versions of packages.

numpy reads the environment when it is imported, so it has to be set before. `precompute/features/mel_check.py` checks
the effect.
"""

from contextlib import suppress
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
    """Return the variables to set for a worker, with the kernels only on an x86 that is known to have AVX2 and FMA."""
    lines = list[str]()
    with suppress(OSError):
        lines = _PROCESSOR.read_text(encoding="utf-8", errors="replace").splitlines()
    flags = next((line.split() for line in lines if line.startswith("flags")), [])
    return dict([*((name, "1") for name in _ONE_THREAD), *([_KERNELS] if {"avx2", "fma"} <= {*flags} else [])])


def installed_versions() -> dict[str, str]:
    """Return the version of each package on which results depend."""
    return {name: version(name) for name in ("lockstep-tts", "numpy", "scipy", "soundfile", "soxr")}
