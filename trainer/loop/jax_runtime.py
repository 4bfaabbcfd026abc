"""Locked steps as portable programs, and running them by JAX on any device that speaks PJRT, without TensorFlow."""

import hashlib
import importlib
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from xtts.shared.errors import import_extra
from xtts.shared.system import atomic_files
from xtts.shared.system.machine import user_cache
from xtts.trainer.data.stored_batches import Input
from xtts.trainer.system.tensorflow_import import machine_digest

_IN_FLIGHT = 2
"""Steps that are queued on the device before the host waits for the metrics of the first."""


@dataclass(frozen=True, kw_only=True)
class Program:
    """A step for one signature."""

    artifact: bytes
    """StableHLO, as a portable artifact."""
    inputs: Sequence[Input]
    """Arguments before the state."""
    state: Sequence[str]
    """Names of the arrays that it reads, in the order of its parameters after `inputs`."""
    writes: Mapping[int, str]
    """Name of the array whose new value a result is, by the position of the result."""


class JaxRuntime:
    """Compiled programs and their state, which stays on the device between calls."""

    def __init__(self, programs: Mapping[str, Program], state: Mapping[str, np.ndarray]) -> None:
        """programs: by name of the step; state: the arrays that they read, by name.

        Raises:
            LockstepError: The extra `jax` is missing.
        """
        self._jax: Any = import_extra("jax", "jax", "--runtime jax", "no JAX")
        self._jax.config.update("jax_enable_x64", True)  # the steps count in int64
        self._client: Any = importlib.import_module("jaxlib.xla_client")
        self._backend: Any = importlib.import_module("jax.extend.backend").get_backend()
        self._device = self._backend.local_devices()[0]
        self.programs, self._executables = programs, dict[str, Any]()
        self._state = {name: self._jax.device_put(array, self._device) for name, array in state.items()}

    @property
    def device_name(self) -> str:
        """Name of the device, as JAX gives it."""
        return f"{self._device.device_kind} ({self._backend.platform}), by JAX {self._jax.__version__}"

    def compile(self, name: str) -> None:
        """Compile a program, or load what an earlier start compiled from the user's cache folder."""
        artifact, devices = self.programs[name].artifact, self._client.DeviceList((self._device,))
        options, kept = self._client.CompileOptions(), self._compiled_path(artifact)
        with suppress(OSError, RuntimeError):
            self._executables[name] = self._backend.deserialize_executable(kept.read_bytes(), devices, options)
            return
        self._executables[name] = self._backend.compile_and_load(artifact, devices, options)
        with suppress(OSError, RuntimeError):  # a folder that cannot be written, a backend that serializes nothing
            kept.parent.mkdir(parents=True, exist_ok=True)
            atomic_files.write(kept, self._executables[name].serialize())

    def _compiled_path(self, artifact: bytes) -> Path:
        """Path of the compiled program, for this version of JAX and this machine."""
        backend = f"{self._backend.platform} {self._backend.platform_version} {self._device.device_kind}"
        name = hashlib.sha256(artifact + backend.encode()).hexdigest()[:32]
        return user_cache() / f"jax-{self._jax.__version__}-{machine_digest()}" / name

    def call(self, name: str, *inputs: Any) -> list[Any]:  # noqa: ANN401 - arrays of NumPy or JAX
        """Queue a call of a compiled program; return its results but for the state, which it updates.

        inputs: of the shapes and types of `Program.inputs`, which PJRT does not check.
        """
        program = self.programs[name]
        arrays = [self._jax.device_put(array, self._device) for array in inputs]
        state = [self._state[array] for array in program.state]
        results = self._executables[name].execute_sharded([*arrays, *state]).disassemble_into_single_device_arrays()
        for position, array in program.writes.items():
            self._state[array] = results[position][0]
        return [result[0] for position, result in enumerate(results) if position not in program.writes]

    def wait(self, results: object = None) -> None:
        """Wait for the state, and for results of `call`, after all queued calls."""
        self._jax.block_until_ready((results, self._state))

    def optimised(self, name: str) -> str:
        """The HLO of a compiled program, as text."""
        return str(self._executables[name].get_hlo_text())

    def state(self) -> dict[str, np.ndarray]:
        """Return the state after all queued calls."""
        return {name: np.asarray(array) for name, array in self._state.items()}


class StepQueue:
    """Queued steps: the device has its next one while the host waits for the metrics of one."""

    def __init__(self) -> None:
        self.metrics: list[np.ndarray] = []
        """Metrics of the finished steps."""
        self.seconds: list[tuple[float, float, float]] = []
        """Seconds of each step, as in a `CallResult`."""
        self._steps = deque[tuple[Any, float, float]]()
        self._arrived = time.perf_counter()

    def add(self, metrics: Any, drawn: float, read: float) -> None:  # noqa: ANN401 - an array of JAX
        """Add a step and wait for one that was added before; drawn, read: when reading its batch began and ended."""
        self._steps.append((metrics, drawn, read))
        if len(self._steps) == _IN_FLIGHT:
            self._wait()

    def wait(self) -> None:
        """Wait for all steps."""
        while self._steps:
            self._wait()

    def _wait(self) -> None:
        metrics, drawn, read = self._steps.popleft()
        self.metrics.append(np.asarray(metrics))
        before, self._arrived = self._arrived, time.perf_counter()
        begin = max(drawn, before)
        ready = max(read, begin)
        self.seconds.append((begin - before, ready - begin, self._arrived - ready))
