"""The device that the steps run on: name, memory, utilisation."""

import os
from collections.abc import Callable

import tensorflow as tf

from xtts.shared.system.machine import peak_resident_bytes


def device_name() -> str:
    """Name of the device that the steps run on."""
    gpus = tf.config.list_physical_devices("GPU")
    if not gpus:
        return f"CPU, {os.cpu_count()} cores"
    return ", ".join(str(tf.config.experimental.get_device_details(gpu).get("device_name", gpu.name)) for gpu in gpus)


def step_device() -> str:
    """TensorFlow's name of the device that the steps run on, where it is a single one."""
    return "GPU:0" if tf.config.list_logical_devices("GPU") else "CPU:0"


def utilisation_reader() -> Callable[[], str]:
    """Function that returns the GPU's utilisation as text, from NVML; an empty text without NVML."""
    try:
        import pynvml  # pyright: ignore[reportMissingImports]
    except ImportError:
        return lambda: ""
    try:
        pynvml.nvmlInit()
        handle = pynvml.nvmlDeviceGetHandleByIndex(0)
        pynvml.nvmlDeviceGetUtilizationRates(handle)  # some GPUs do not report it
    except pynvml.NVMLError:
        return lambda: ""
    return lambda: f"GPU {pynvml.nvmlDeviceGetUtilizationRates(handle).gpu}%"


def memory_used() -> str:
    """GPU memory in use, or on a CPU this process' peak so far."""
    if step_device() != "CPU:0":
        return f"GPU memory {tf.config.experimental.get_memory_info('GPU:0')['current'] / 2**30:.1f} GiB"
    return f"memory {peak_resident_bytes() / 2**30:.1f} GiB"
