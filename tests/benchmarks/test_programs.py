"""Every program that measures builds, training or speech runs to its end and says what it measured.

How fast is for the machine that it is meant for.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import forked_program
import numpy as np
import pytest

pytestmark = pytest.mark.long
BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
MICRO = {
    "text_width": 16, "text_blocks": 1, "text_heads": 2, "prenet_layers": 1, "duration_width": 16, "duration_layers": 1,
    "decoder_width": 16, "decoder_blocks": 1, "decoder_levels": [],
}  # fmt: skip
SETTINGS = [f"model.{name}={value}" for name, value in MICRO.items()]


@pytest.fixture
def micro(tmp_path):
    """A configuration with one shape of the least model."""
    path = tmp_path / "micro.yaml"
    model = {"size": "tiny", **MICRO, "voice_width": 16, "voice_layers": 1, "voice_frames": 48}
    path.write_text(json.dumps({"model": model, "shapes": {"buckets": 1}, "training": {"batch_size": 3}}))
    return path


@pytest.mark.parametrize(
    ("program", "arguments", "rows"),
    [
        ("parquet_corpus", ["--large-bytes", 300_000], 3),
        ("segments", ["--hours", 0.02], 3),
        ("ray_overhead", ["--config", "tiny"], 3),
    ],
)
def test_builds(measure, tmp_path, program, arguments, rows):
    if program == "ray_overhead":
        pytest.importorskip("ray")
    amounts = ["--clips", 12, "--rounds", 1, "--workers", 1]
    figures, page = measure(program, *amounts, *arguments, "--work", tmp_path / "work")
    assert len(figures["table"]) == rows
    assert all(row["seconds"] > 0 for row in figures["table"])
    assert f" {figures['table'][0]['seconds']:.4g} |" in page


def test_rebuild(measure, tmp_path):
    figures, page = measure("rebuild", "--clips", 12, "--rounds", 1, "--config", "tiny", "--work", tmp_path / "work")
    fresh, again, changed = figures["told"].values()
    assert (again["written"], again["kept"]) == (0, fresh["written"])
    assert (changed["written"], changed["kept"]) == (1, fresh["written"] - 1)
    assert list(figures["seconds"]) == [*figures["told"], "verify"]
    assert "| one recording changed | " in page


def test_precompute(tone_corpus, tmp_path):
    data, out = tone_corpus(tmp_path / "corpus", 12), tmp_path / "figures.json"
    line = [sys.executable, BENCHMARKS / "precompute.py", "--data", data, "--work", tmp_path / "work", "--out", out]
    amounts = ["--rounds", 2, "--workers", 2, "--only", "librosa"]
    done = subprocess.run([*map(str, line + amounts)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    figures = json.loads(out.read_text())
    rows = figures["contestants"]
    assert list(rows) == ["lockstep", "librosa", "floor"]
    assert rows["floor"]["mib_written"] == pytest.approx(rows["lockstep"]["mib_written"], rel=0.3)
    assert figures["by_wall"]["fastest_other"] == figures["by_cpu"]["fastest_other"] == "librosa"


def test_a_clip_more_takes_few_bytes_in_the_command_of_a_build(tmp_path):
    """A row object a clip took 1,800 bytes, an id alone takes 61 and its place in a list."""
    import driver_cost

    assert driver_cost.memory_slope(tmp_path, 20_000, 40_000) <= driver_cost.GATES["bytes"]


def test_scale():
    import scale

    assert scale.simulate_plan(50_000, 32)["shards"] > 100
    assert scale.simulate_join(50_000)["changed"] == 500
    options = scale.argparse.Namespace(rows=1_000_000, shard_mb=256, frames_per_second=40_000)
    first = scale.requests(options)["table"][0]
    assert first["dollars"] == pytest.approx(5_000 * 0.0004 + first["PUT and LIST"] / 1000 * 0.005, abs=0.01)
    assert scale.reading(options)["table"][-1]["MB/s"] == pytest.approx(8 * 40_000 * 160 / 0.93 / 1e6, rel=0.01)


def test_step_cost(measure, monkeypatch):
    import step_cost

    monkeypatch.setitem(step_cost.QUICK, "tokens", 16)
    monkeypatch.setitem(step_cost.QUICK, "frames", 48)
    figures, page = measure("step_cost", "--quick", "--set", *SETTINGS)
    tiny = figures["table"][0]
    assert (figures["batch_size"], tiny["size"], len(figures["table"])) == (2, "tiny", 1)
    assert tiny["share_of_optimizer"] == pytest.approx(tiny["optimizer_ms"] / tiny["step_ms"], rel=0.01, abs=1e-3)
    assert tiny["useful_frames_per_second"] == pytest.approx(1000 * (48 + int(0.85 * 48)) / tiny["step_ms"], rel=0.01)
    assert f"\n| tiny | {tiny['parameters']:,} |" in page


def test_export_step(micro, tmp_path):
    """The step leaves TensorFlow whole: HLO whose leading arguments are the batch beside it."""
    from tensorflow.compiler.xla.service import hlo_pb2

    amounts = ["--sizes", "tiny", "--config", micro.name, "--batch-size", "2", "--tokens", "16", "--frames", "48"]
    line = [sys.executable, str(BENCHMARKS / "export_step.py"), *amounts, "--kernels", "--out", "."]
    # Not with the flags of the tests: without XLA's own emitters a scatter becomes a loop.
    environment = os.environ | {"XLA_FLAGS": "--xla_backend_optimization_level=0"}
    printed = subprocess.run(line, cwd=tmp_path, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout
    described, batch = json.loads((tmp_path / "tiny.json").read_text()), np.load(tmp_path / "tiny.npz")
    assert {name: (batch[name].shape, batch[name].dtype.name) for name in batch} == {
        "arg0": ((2, 16), "int32"), "arg1": ((2, 48, 80), "float16"),
        **{f"arg{part}": ((2,), "int32") for part in range(2, 6)},
    }  # fmt: skip
    assert f"{described['parameters']:,}" in printed
    turns = [int(loop.split(" x ")[0]) for loop in described["loops"].split(", ")]
    assert turns == [6, 4]  # 47 frames by 8, 16 tokens by 4: the alignment search has the only loops
    assert described["kernels"] > 100
    module = hlo_pb2.HloModuleProto.FromString((tmp_path / "tiny.hlo").read_bytes())
    shapes = [list(shape.dimensions) for shape in module.host_program_shape.parameters]
    assert shapes[:2] == [[2, 16], [2, 48, 80]]


def test_training(measure, monkeypatch, tmp_path):
    """With one shape: two compiles in all, in two parts, both in this process."""
    import training

    def part(_, *arguments, shown):
        monkeypatch.setattr("sys.argv", ["training.py", *map(str, arguments)])
        training.main()

    monkeypatch.setenv("TF_XLA_FLAGS", "")  # which the benchmark takes away
    monkeypatch.setattr(training, "script", part)
    monkeypatch.setattr("setup.commands.subprocess", forked_program)  # of the input pipelines
    amounts = ["--buckets", 1, "--clips", 12, "--longest", 96, "--steps", 4, "--dynamic-batches", 1, "--rounds", 1]
    settings = [part for value in [*SETTINGS, "training.batch_size=3"] for part in ("--set", value)]
    work = ["--seconds", 0.1, "--work", tmp_path / "work"]
    figures, page = measure("training", "--only", *"abcde", *amounts, *settings, *work)
    assert [line[4] for line in page.splitlines() if line.startswith("### ")] == list(figures["sections"])
    a, b, c, d, e = (figures["sections"][name] for name in "abcde")
    dynamic, locked = a["table"]
    assert a["times_faster"] == pytest.approx(dynamic["mean_seconds"] / locked["mean_seconds"])
    assert [(row["traces"], row["batches"]) for row in (dynamic, locked)] == [(1, 1), (1, 4)]
    assert b["std_over_mean"] >= 0
    assert 0 <= d["input_wait_share"] <= 1
    assert e["times_one_shape"] == 1
    rows = {row["pipeline"]: row for row in c["table"]}
    ratio = rows["lockstep"]["examples_per_second"] / rows["from_generator"]["examples_per_second"]
    assert c["times_from_generator"] == pytest.approx(ratio)


def test_audio_source(measure, micro, tiny_corpus, tmp_path, monkeypatch):
    import audio_source

    monkeypatch.setattr("setup.commands.subprocess", forked_program)
    places = ["--data", tiny_corpus, "--work", tmp_path, "--config", micro]
    figures, _ = measure("audio_source", "--quick", "--batches", 4, *places)
    assert [row["source"] for row in figures["table"]] == list(audio_source.SOURCES)
    assert all(value >= 0 for row in figures["table"] for value in row.values() if not isinstance(value, str))
    assert figures["times_numpy_function"] > 0


def test_unheard_voices(measure, micro, tmp_path, monkeypatch):
    pytest.importorskip("espeakng_loader")
    monkeypatch.setattr("setup.commands.subprocess", forked_program)
    settings = ["--reference-seconds", 2, "--set", "shapes.buckets=1", "model.voice_latents=4"]
    figures, page = measure("unheard_voices", "--quick", "--work", tmp_path, "--config", micro, *settings)
    assert all(0 <= figures[f"speech,_{kind}"] <= 1 for kind in ("held_out", "held_out,_of_all", "trained"))
    assert "| held-out voice | voice-004 | voice-005 | voice-006 |" in page
    cached = json.loads((tmp_path / "corpus-6-3-36-cache/cache.json").read_text())["speakers"]
    assert set(cached) == {"voice-001", "voice-002", "voice-003"}, "a held-out voice reached training"
