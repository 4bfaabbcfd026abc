"""The programs of benchmarks/, in this process."""

import importlib
import json
from pathlib import Path

import numpy as np
import onnx
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(autouse=True)
def on_path(monkeypatch):
    """Make the programs and their folders importable, as where they run."""
    monkeypatch.syspath_prepend(BENCHMARKS)


@pytest.fixture
def measure(monkeypatch, tmp_path, capfd):
    """`measure("rebuild", "--clips", 12, ...)`: (the figures of a program, what it printed)."""

    def run(program, *arguments):
        out = tmp_path / "figures.json"
        monkeypatch.setattr("sys.argv", [f"{program}.py", *map(str, arguments), "--out", str(out)])
        importlib.import_module(program).main()
        return json.loads(out.read_text()), capfd.readouterr().out

    return run


@pytest.fixture
def hibari(monkeypatch, tmp_path):
    """A program of that name for other processes: 0.05 s of processor time for 0.1 s of sound, 0.5 s at first.

    By a clock of its own.
    """
    weights = onnx.numpy_helper.from_array(np.zeros(100_000, np.float32), "weights")
    result = onnx.helper.make_tensor_value_info("weights", onnx.TensorProto.FLOAT, [100_000])
    graph = onnx.helper.make_graph([], "voice", [], [result], [weights])
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)]), tmp_path / "voice.onnx")
    (tmp_path / "hibari.py").write_text("""
import time, numpy, onnxruntime

now = 0.0
time.process_time = lambda: now

class Hibari:
    sample_rate, model_path = 8000, __file__.replace("hibari.py", "voice.onnx")
    spends = 0.5

    def __init__(self):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 2
        onnxruntime.InferenceSession(self.model_path, options, providers=["CPUExecutionProvider"])
        assert options.intra_op_num_threads == 1

    def __call__(self, text, seed):
        global now
        now, self.spends = now + self.spends, 0.05
        return numpy.resize([1, -1], 800) * len(text) / 100
""")
    (tmp_path / "hibari_tts-1.0.dist-info").mkdir()
    (tmp_path / "hibari_tts-1.0.dist-info" / "METADATA").write_text("Name: hibari-tts\nVersion: 1.0\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
