"""Running the locked steps by JAX on any device that speaks PJRT; TensorFlow only traces them, on the CPU."""

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from xtts.shared.errors import LockstepError, import_extra
from xtts.trainer.loop.programs import Program


class JaxRuntime:
    """Compiled programs and their state, which stays on the device between calls."""

    def __init__(self, programs: Mapping[str, Program]) -> None:
        """Take the values of the variables; programs: by name of the step.

        Raises:
            LockstepError: The extra `jax` is missing.
        """
        self._jax: Any = import_extra("jax", "jax", "--runtime jax", "no JAX")
        self._jax.config.update("jax_enable_x64", True)  # the steps count in int64
        self._options: Any = importlib.import_module("jaxlib.xla_client").CompileOptions()
        self._device_list: Any = importlib.import_module("jaxlib.xla_client").DeviceList
        self._backend: Any = importlib.import_module("jax.extend.backend").get_backend()
        self.device = self._backend.local_devices()[0]
        self._programs, self._executables = programs, dict[str, Any]()
        self._variables = {id(variable): variable for program in programs.values() for variable in program.state}
        self._state = dict[int, Any]()
        self.push()

    @property
    def device_name(self) -> str:
        """Name of the device, as JAX gives it."""
        return f"{self.device.device_kind} ({self._backend.platform}), by JAX {self._jax.__version__}"

    def compile(self, name: str) -> None:
        """Compile a program."""
        devices = self._device_list((self.device,))
        self._executables[name] = self._backend.compile_and_load(self._programs[name].artifact, devices, self._options)

    def call(self, name: str, *inputs: Any) -> list[Any]:  # noqa: ANN401 - arrays of NumPy or JAX
        """Queue a call of a compiled program; return its results but for the state, which it updates.

        Raises:
            LockstepError: An input has another shape or type than the program, which PJRT would read as it is.
        """
        program = self._programs[name]
        self._check(name, program.inputs, inputs)
        arrays = [self._jax.device_put(array, self.device) for array in inputs]
        state = [self._state[id(variable)] for variable in program.state]
        results = self._executables[name].execute_sharded([*arrays, *state]).disassemble_into_single_device_arrays()
        for position, variable in program.writes.items():
            self._state[id(variable)] = results[position][0]
        return [result[0] for position, result in enumerate(results) if position not in program.writes]

    @staticmethod
    def _check(name: str, specs: Sequence[tf.TensorSpec], inputs: Sequence[Any]) -> None:
        found = [(str(array.dtype), tuple(array.shape)) for array in inputs]
        expected = [(spec.dtype.name, tuple(spec.shape)) for spec in specs]
        if found != expected:
            raise LockstepError(name, found=f"inputs {found}", expected=str(expected))

    def push(self) -> None:
        """Copy the values of the variables to the device."""
        for key, variable in self._variables.items():
            self._state[key] = self._jax.device_put(variable.numpy(), self.device)

    def pull(self) -> None:
        """Copy the state to the variables, after all queued calls."""
        for key, variable in self._variables.items():
            variable.assign(np.asarray(self._state[key]))
