"""What the steps run on: its name, its memory, how busy it is."""

import os
from collections.abc import Callable

import tensorflow as tf

from xtts.shared.system.peak_memory import peak_resident_bytes


def device_name() -> str:
    """What the steps run on."""
    gpus = tf.config.list_physical_devices("GPU")
    if not gpus:
        return f"CPU, {os.cpu_count()} cores"
    return ", ".join(str(tf.config.experimental.get_device_details(gpu).get("device_name", gpu.name)) for gpu in gpus)


def accelerator() -> str | None:
    """The GPU that the steps run on, as TensorFlow names it; None where there is only a CPU."""
    return "/GPU:0" if tf.config.list_logical_devices("GPU") else None


def utilisation_reader() -> Callable[[], str]:
    """Function that says how busy the GPU is, by NVML where that is installed; nothing elsewhere."""
    try:
        import pynvml  # pyright: ignore[reportMissingImports]
    except ImportError:
        return lambda: ""
    try:
        pynvml.nvmlInit()
        handle = pynvml.nvmlDeviceGetHandleByIndex(0)
        pynvml.nvmlDeviceGetUtilizationRates(handle)  # not every kind of GPU tells
    except pynvml.NVMLError:
        return lambda: ""
    return lambda: f"GPU {pynvml.nvmlDeviceGetUtilizationRates(handle).gpu}%"


def memory_used() -> str:
    """Memory of the GPU in use, or this process' largest so far on a CPU."""
    if accelerator():
        return f"GPU memory {tf.config.experimental.get_memory_info('GPU:0')['current'] / 2**30:.1f} GiB"
    return f"memory {peak_bytes() / 2**30:.1f} GiB"


def peak_bytes() -> int:
    """Most memory used at once so far: of the GPU, or of this process on a CPU (0 where the system does not tell)."""
    if accelerator():
        return int(tf.config.experimental.get_memory_info("GPU:0")["peak"])
    return peak_resident_bytes()
