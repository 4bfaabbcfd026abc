# pyright: reportMissingImports=false
"""Training of a step that `vocoder_training.py --export` wrote, on whatever device JAX sees: no TensorFlow.

    python benchmarks/run_hlo.py DIR [--seconds 600]

Writes DIR/weights.npz, the averaged weights, and DIR/losses.json. The learning rate decays in the last part of the
seconds. Needs jax 0.10 or 0.11, numpy and DIR.
"""

import argparse
import json
import re
import time
from pathlib import Path
from typing import Any

import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax._src import compiler, xla_bridge  # noqa: E402
from jax._src.interpreters import mlir  # noqa: E402
from jax._src.lib import _jax  # noqa: E402
from jaxlib import xla_client  # noqa: E402
from jaxlib.mlir import ir  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=600.0)
    options = parser.parse_args()
    described = json.loads((options.folder / "step.json").read_text())
    executable, updated = compile_step((options.folder / "step.hlo").read_bytes())
    variables = {name: jax.device_put(value) for name, value in np.load(options.folder / "variables.npz").items()}
    losses = train(executable, updated, variables, described, options)
    averages = np.asarray(variables["averages"])
    shapes = {name: variables[name].shape for name in described["weights"]}
    weights = {
        name: averages[start : start + int(np.prod(shapes[name]))].reshape(shapes[name])
        for name, start in described["weights"].items()
    }
    np.savez(options.folder / "weights.npz", **weights)
    (options.folder / "losses.json").write_text(json.dumps(losses))


def compile_step(data: bytes) -> tuple[Any, dict[int, int]]:
    """(executable, output by the input that it replaces) of a serialized HLO module."""
    text = xla_client._xla.mlir.xla_computation_to_mlir_module(xla_client.XlaComputation(data))
    # Newer plug-ins refuse copies; a reshape to the same shape is one.
    text = re.sub(r"mhlo\.copy (%[\w#]+) : (tensor<[^>]*>)", r"mhlo.reshape \1 : (\2) -> \2", text)
    backend = xla_bridge.get_backend()
    device = backend.devices()[0]
    with mlir.make_ir_context():
        module = ir.Module.parse(text)
        aliases = str(module.operation.attributes["mhlo.input_output_alias"])
        pattern = r"parameter_number = (\d+) : i64}, output_index = array<i64: (\d+)>"
        updated = {int(i): int(o) for i, o in re.findall(pattern, aliases)}
        executable = compiler.backend_compile_and_load(
            backend, module, _jax.DeviceList((device,)), compiler.get_compile_options(1, 1), []
        )
    print(f"compiled for {device.device_kind}", flush=True)
    return executable, updated


def train(
    executable: Any,  # noqa: ANN401 - of a private class
    updated: dict[int, int],
    variables: dict[str, jax.Array],
    described: dict[str, Any],
    options: argparse.Namespace,
) -> list[list[float]]:
    """Train for some seconds, in place; returns means of the losses of 500 steps each."""
    recordings = np.load(options.folder / "recordings.npz")
    data = [jax.device_put(recordings[name]) for name in ("samples", "log_hertz", "voiced")]
    frames, crops, hop, captured = (described[key] for key in ("frames", "crops", "hop", "captured"))
    padding = (described["samples"] - frames * hop) // 2

    @jax.jit
    def gather(samples: jax.Array, log_hertz: jax.Array, voiced: jax.Array, places: jax.Array) -> tuple[jax.Array, ...]:
        def cut(values: jax.Array, first: jax.Array, count: int) -> jax.Array:
            return jax.vmap(lambda start: jax.lax.dynamic_slice(values, (start,), (count,)))(first)

        sound = cut(samples, places * hop - padding, described["samples"])
        return sound, cut(log_hertz, places, frames), cut(voiced, places, frames)

    lengths = recordings["frames"]
    starts, room = np.cumsum(lengths) - lengths, np.maximum(lengths - frames - 4, 0)
    random, began, step, last = np.random.default_rng(0), time.perf_counter(), 0, None
    decay, means, losses = described["decay"], [], []
    while last is None or step < last:
        if last is None and time.perf_counter() - began > options.seconds * (1.0 - decay):
            decay_start, last = step, step + max(1, round(step * decay / (1.0 - decay)))
        share = 0.0 if last is None else (step - decay_start) / (last - decay_start)
        rate = described["peak"] * min(1.0, (step + 1) / described["warmup_steps"])
        rate *= 0.05 + 0.475 * (1.0 + np.cos(np.pi * share))
        chosen = random.choice(len(room), crops, p=room / room.sum())
        places = starts[chosen] + 2 + (random.random(crops) * room[chosen]).astype(np.int64)
        inputs = [*gather(*data, jnp.asarray(places)), jnp.float32(rate)]
        outputs = executable.execute([*inputs, *(variables[name] for name in captured)])
        for parameter, output in updated.items():
            variables[captured[parameter - len(inputs)]] = outputs[output]
        losses.append(outputs[0])
        step += 1
        if step % 500 == 0 or step == last:
            means.append([step, *np.mean([np.asarray(one) for one in losses], axis=0).tolist()])
            print(means[-1], f"{time.perf_counter() - began:.0f} s", flush=True)
            losses = []
    return means


if __name__ == "__main__":
    main()
