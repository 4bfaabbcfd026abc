"""What `gpu.py` measures on the device, each in a process of its own with NAME JOB, the latter its options as JSON."""

import json
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable
from functools import reduce
from pathlib import Path

import numpy as np

from xtts.shared.config_files import load_config
from xtts.trainer.system.tensorflow_import import tensorflow_import

with tensorflow_import():
    import tensorflow as tf
    from export_step import locked_step, make_batch
    from tensorflow.compiler.xla import xla_data_pb2
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    from training_parts.kernels import count_kernels
    from training_parts.products import count_products
    from xtts.trainer.data.batch import Batch
    from xtts.trainer.model.alignment import search_durations
    from xtts.trainer.system.device import device_name, step_device

TYPES = {xla_data_pb2.F32: "float32", xla_data_pb2.BF16: "bfloat16"}
_PRODUCTS = 10
"""Matrix products of a call that measures the ceiling: enough for its launch not to count."""
_PROFILED = 10
"""Steps."""


def machine(job: Namespace) -> dict[str, object]:
    """The device, and the rates of large matrix products on it."""
    gpus = tf.config.list_physical_devices("GPU")
    details = tf.config.experimental.get_device_details(gpus[0]) if gpus else {}
    return {
        "device": device_name(), "compute capability": ".".join(map(str, details.get("compute_capability", "-"))),
        "TensorFlow": tf.__version__, "CUDA": tf.sysconfig.get_build_info()["cuda_version"] if gpus else "-",
        **{f"{name}, TFLOP/s": rate / 1e12 for name, rate in ceilings(job.calls).items()},
    }  # fmt: skip


def first_call(job: Namespace) -> dict[str, object]:
    """Seconds to build the model and trace its step, and to the first result of what was traced."""
    began = time.perf_counter()
    step, batch = prepare(job)
    step.get_concrete_function()
    traced = time.perf_counter()
    step(*batch).numpy()
    return {"trace": traced - began, "first": time.perf_counter() - traced}


def step(job: Namespace) -> dict[str, object]:
    """The time of a step, and where it goes."""
    step, batch = prepare(job)
    seconds = seconds_of(lambda: step(*batch), job.calls)
    low, median, high = np.quantile(seconds, [0.1, 0.5, 0.9]).tolist()
    busy, launches = profile(lambda: step(*batch)) if step_device() != "CPU:0" else ("-", "-")
    scores = tf.random.normal([*batch.tokens.shape, batch.mel.shape[1]])
    search = tf.function(search_durations, jit_compile=True, autograph=False)
    searching = seconds_of(lambda: search(scores, batch.token_length, batch.mel_length), job.calls)
    hlo, rates = step.experimental_get_compiler_ir(*batch), ceilings(job.calls)
    products = count_products(hlo(stage="hlo_serialized"))
    ideal = sum(count / rates[TYPES[kind]] for kind, count in products.items())
    return {
        "size": job.size, "clips": len(batch.tokens), "step, ms": 1e3 * median, "10%": 1e3 * low, "90%": 1e3 * high,
        "useful frames/s": int(tf.reduce_sum(batch.mel_length)) / median,
        "kernels": count_kernels(hlo(stage="optimized_hlo")).launched, "launches": launches,
        "idle": busy if isinstance(busy, str) else 1 - busy / median,
        "alignment": float(np.median(searching)) / median,
        "GFLOP": sum(products.values()) / 1e9, "of the ceiling": ideal / median,
    }  # fmt: skip


def prepare(job: Namespace) -> tuple[tf.types.experimental.PolymorphicFunction, Batch]:
    """(the locked step, a batch in the device's memory)."""
    config = load_config(job.size, overlays=job.config)
    batch, signature = make_batch(config, job.clips or config.training.batch_size, job.tokens, job.frames)
    return locked_step(config, batch, signature)[0], Batch(*map(tf.constant, batch))


def seconds_of(call: Callable[[], tf.Tensor], calls: int) -> np.ndarray:
    """float64[calls]: seconds until a result is here, after a first one that does not count."""
    times = []
    for _ in range(1 + calls):
        began = time.perf_counter()
        call().numpy()
        times.append(time.perf_counter() - began)
    return np.array(times[1:])


def ceilings(calls: int) -> dict[str, float]:
    """Operations a second by type; float32 as TensorFlow multiplies by default, on a GPU with TF32."""
    rates, size = {}, 8192 if step_device() != "CPU:0" else 512
    for name in TYPES.values():
        factor = tf.cast(tf.random.normal([size, size], stddev=size**-0.5), name)
        chain = tf.function(multiply, jit_compile=True, autograph=False)
        rates[name] = 2 * _PRODUCTS * size**3 / float(np.median(seconds_of(lambda: chain(factor), calls)))  # noqa: B023
    return rates


def multiply(factor: tf.Tensor) -> tf.Tensor:
    """A number for which every product is needed."""
    return tf.reduce_sum(reduce(tf.matmul, [factor] * (1 + _PRODUCTS)))


def profile(call: Callable[[], tf.Tensor]) -> tuple[float, float]:
    """(seconds in which the GPU computes or copies, how often it begins something) of a call."""
    with tempfile.TemporaryDirectory() as folder:
        tf.profiler.experimental.start(folder)
        for _ in range(_PROFILED):
            call().numpy()
        tf.profiler.experimental.stop()
        (file,) = Path(folder).rglob("*.xplane.pb")
        spans = stream_spans(xplane_pb2.XSpace.FromString(file.read_bytes()))
    return busy_seconds(spans) / _PROFILED, len(spans) / _PROFILED


def stream_spans(space: xplane_pb2.XSpace) -> list[tuple[int, int]]:
    """(begin, end) in picoseconds of all that ran on the streams of the first GPU."""
    spans = []
    for line in (line for plane in space.planes if plane.name.startswith("/device:GPU:0") for line in plane.lines):
        if line.name.startswith("Stream"):  # others repeat the events by step, module and operation
            begins = [(1000 * line.timestamp_ns + event.offset_ps, event.duration_ps) for event in line.events]
            spans += [(begin, begin + duration) for begin, duration in begins]
    return spans


def busy_seconds(spans: list[tuple[int, int]]) -> float:
    """Seconds in which at least one of them runs."""
    busy = reached = 0
    for begin, end in sorted(spans):
        busy += max(0, end - max(begin, reached))
        reached = max(reached, end)
    return busy / 1e12


if __name__ == "__main__":
    measures = {"machine": machine, "first_call": first_call, "step": step}
    print(json.dumps(measures[sys.argv[1]](Namespace(**json.loads(sys.argv[2])))))
