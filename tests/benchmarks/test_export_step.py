"""The step leaves TensorFlow whole: HLO whose leading arguments are the batch beside it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
OVERLAY = """
model: {text_width: 16, text_blocks: 1, text_heads: 2, prenet_layers: 1, duration_width: 16, decoder_width: 16,
        decoder_blocks: 1}
"""
"""Of the least model: what is counted depends on the shapes alone."""


def test_a_size_is_exported_with_its_batch(tmp_path):
    (tmp_path / "micro.yaml").write_text(OVERLAY)
    arguments = ["--sizes", "tiny", "--config", "micro.yaml", "--batch-size", "2", "--tokens", "16", "--frames", "48"]
    line = [sys.executable, str(BENCHMARKS / "export_step.py"), *arguments, "--kernels", "--out", "."]
    # Not with the flags of the tests: without XLA's own emitters a scatter becomes a loop.
    environment = os.environ | {"XLA_FLAGS": "--xla_backend_optimization_level=0"}
    printed = subprocess.run(line, cwd=tmp_path, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout
    described = json.loads((tmp_path / "tiny.json").read_text())
    batch = np.load(tmp_path / "tiny.npz")
    assert {name: (batch[name].shape, batch[name].dtype.name) for name in batch} == {
        "arg0": ((2, 16), "int32"), "arg1": ((2, 48, 80), "float16"),
        **{f"arg{part}": ((2,), "int32") for part in range(2, 6)},
    }  # fmt: skip
    assert described["useful_frames"] == batch["arg3"].sum() == 48 + int(0.85 * 48)
    assert f"{described['parameters']:,}" in printed
    turns = [int(loop.split(" x ")[0]) for loop in described["loops"].split(", ")]
    assert turns == [6, 4]  # 47 frames by 8, 16 tokens by 4: the alignment search has the only loops
    assert described["kernels"] > 100
    assert parameters(tmp_path / "tiny.hlo")[:2] == [[2, 16], [2, 48, 80]]


def parameters(file: Path) -> list[list[int]]:
    """Dimensions of the module's parameters, in their order."""
    from tensorflow.compiler.xla.service import hlo_pb2

    module = hlo_pb2.HloModuleProto.FromString(file.read_bytes())
    return [list(shape.dimensions) for shape in module.host_program_shape.parameters]
