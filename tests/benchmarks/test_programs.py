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

from xtts.trainer.evaluation.judge import Opinion

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


def test_rebuild(measure, tmp_path):
    figures, page = measure("rebuild", "--clips", 12, "--rounds", 1, "--config", "tiny", "--work", tmp_path / "work")
    fresh, again, changed = figures["told"].values()
    assert (again["written"], again["kept"]) == (0, fresh["written"])
    assert (changed["written"], changed["kept"]) == (1, fresh["written"] - 1)
    assert list(figures["seconds"]) == [*figures["told"], "verify"]
    assert "| one recording changed | " in page


def test_precompute(tone_corpus, tmp_path):
    data, out = tone_corpus(tmp_path / "corpus", 12, seconds=(1.5, 2.0)), tmp_path / "figures.json"
    line = [sys.executable, BENCHMARKS / "precompute.py", "--data", data, "--work", tmp_path / "work", "--out", out]
    amounts = ["--rounds", 2, "--workers", 2, "--only", "librosa"]
    done = subprocess.run([*map(str, line + amounts)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    figures = json.loads(out.read_text())
    rows = figures["contestants"]
    assert list(rows) == ["lockstep", "librosa", "floor"]
    assert rows["floor"]["mib_written"] == pytest.approx(rows["lockstep"]["mib_written"], rel=0.3)
    assert figures["by_wall"]["fastest_other"] == "librosa"


def test_scale(measure):
    figures, _ = measure("scale", "--rows", 50_000, "--shard-mb", 32, "--built", 200)
    plan, match, build, rerun = figures["table"]
    assert plan["shards"] > 100
    assert match["changed"] == 500
    assert build["shards"] == rerun["shards"] >= 1


def test_other_voices(measure, hibari, tiny_cache, tiny_corpus, monkeypatch, tmp_path):
    """Without the models that judge: the opinion is the loudest sample."""
    heard = []

    class Ear:
        def __init__(self, asr):
            assert asr == "base"

        def judge(self, spoken, rate, recorded):
            heard.append([(utterance.text, rate, utterance.language) for utterance in spoken])
            return [float(np.abs(utterance.samples).max()) for utterance in spoken]

        def summarise(self, spoken, verdicts):
            means = dict.fromkeys(("distillmos", "dnsmos"), np.mean(verdicts))
            return Opinion(character_error_rate=0.5, distillmos_error=0, similarity=None, **means)

    monkeypatch.setattr("other_voices.Judge", Ear)
    voice = BENCHMARKS.parent / "voices" / "base"
    words = ["--cache", tiny_cache, "--data", tiny_corpus, "--limit", 2, "--sounds", tmp_path / "sounds"]
    figures, page = measure("other_voices", voice, *words, "--other", "hibari", sys.executable)
    recording, own, other = figures["table"]
    assert own["voice"].startswith("lockstep-tts ")
    assert own["parameters"] == "3.6M"
    assert float(own["real-time factor"]) > 0
    assert recording["real-time factor"] is None
    assert other["DNSMOS"] == "0.05", "of its level"
    assert [{rate for _, rate, _ in spoken} for spoken in heard] == [{22_050}, {22_050}, {8000}]
    assert {language for spoken in heard for _, _, language in spoken} == {"en"}
    assert len({tuple(text for text, _, _ in spoken) for spoken in heard}) == 1
    assert "| hibari-tts 1.0 | " in page


def test_export_step(micro, tmp_path):
    """The step leaves TensorFlow whole: HLO whose leading arguments are the batch beside it."""
    from tensorflow.compiler.xla.service import hlo_pb2

    amounts = ["--config", micro.name, "--batch-size", "2", "--tokens", "16", "--frames", "48"]
    printed = exported("tiny", amounts, tmp_path)
    described, batch = json.loads((tmp_path / "tiny.json").read_text()), np.load(tmp_path / "tiny.npz")
    assert {name: (batch[name].shape, batch[name].dtype.name) for name in batch} == {
        "arg0": ((2, 16), "int32"), "arg1": ((2, 48, 80), "float16"),
        **{f"arg{part}": ((2,), "int32") for part in range(2, 6)},
    }  # fmt: skip
    assert f"{described['parameters']:,}" in printed
    turns = [int(loop.split(" x ")[0]) for loop in described["loops"].split(", ")]
    assert turns == [3]  # 47 frames by 16: the alignment search has the only loop
    assert described["kernels"] > 100
    module = hlo_pb2.HloModuleProto.FromString((tmp_path / "tiny.hlo").read_bytes())
    shapes = [list(shape.dimensions) for shape in module.host_program_shape.parameters]
    assert shapes[:2] == [[2, 16], [2, 48, 80]]


def exported(size, amounts, folder):
    """What export_step.py prints of a size; its files lie in the folder."""
    line = [sys.executable, str(BENCHMARKS / "export_step.py"), "--sizes", size, *amounts, "--kernels", "--out", "."]
    # Not with the flags of the tests: without XLA's own emitters a scatter becomes a loop.
    environment = os.environ | {"XLA_FLAGS": "--xla_backend_optimization_level=0"}
    return subprocess.run(line, cwd=folder, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout


def test_a_step_of_normal_launches_few_kernels(tmp_path):
    """In float32: around each product in bfloat16 a CPU converts its operands, which a GPU does not."""
    (tmp_path / "float32.yaml").write_text("training: {mixed_precision: float32}")
    exported("normal", ["--config", "float32.yaml", "--batch-size", "8"], tmp_path)
    described = json.loads((tmp_path / "normal.json").read_text())
    turns = [int(loop.split(" x ")[0]) for loop in described["loops"].split(", ")]
    assert sum(turns) <= 60, described
    assert described["kernels"] <= 2500, described


def test_training(measure, monkeypatch, tmp_path):
    """With one shape: two compiles in all, in two parts, both in this process."""
    import training

    def part(_, *arguments):
        monkeypatch.setattr("sys.argv", ["training.py", *map(str, arguments)])
        return training.measure(training.parse_arguments())

    monkeypatch.setenv("TF_XLA_FLAGS", "")  # which the benchmark takes away
    monkeypatch.setattr(training, "measured", part)
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


def test_equal_minutes(measure, micro, tiny_cache, monkeypatch, tmp_path):
    monkeypatch.setattr("setup.commands.subprocess", forked_program)
    words = ["a:shapes.buckets=2;split.validation_fraction=0.1", "--config", micro, "--cache", tiny_cache, "--limit", 2]
    words += ["--work", tmp_path / "work", "--steps", 2]
    figures, page = measure("equal_minutes", *words)
    assert [(run["variant"], run["seed"], run["steps"]) for run in figures["runs"]] == [("a", 0, 2)]
    row, recordings, others = figures["table"]
    assert (row["seeds"], row["flow_loss"]) == (1, f"{figures['runs'][0]['figures']['flow_loss']:.3f}")
    assert float(others["frechet_distance"]) < float(row["frechet_distance"])
    assert float(recordings["relative_mcd"]) < float(row["relative_mcd"])
    assert f"| a | 1 | {row['parameters']:,} | 2 | " in page


def test_gpu(measure, micro, monkeypatch, tmp_path):
    """All parts, of the least model, on a CPU."""
    monkeypatch.setenv("XLA_FLAGS", "--xla_backend_optimization_level=0")  # as of test_export_step
    monkeypatch.setenv("XDG_CACHE_HOME", "")  # which the program changes, and the next takes away
    monkeypatch.setenv("TF_XLA_FLAGS", "")
    monkeypatch.setattr("setup.commands.subprocess", forked_program)
    figures, page = measure("gpu", "--quick", "--config", micro, "--work", tmp_path / "work")
    parts = ["machine", "compile", "step", "precision", "training"]
    assert [line[3:] for line in page.splitlines() if line.startswith("## ")] == parts
    assert [len(figures[part]) for part in parts] == [1, 1, 1, 2, 1]
    (machine,), (compiled,), (step,), precisions, (trained,) = (figures[part] for part in parts)
    assert machine["bfloat16, TFLOP/s"] > 0
    assert compiled["cold, s"] > 0
    assert step["10%"] <= step["step, ms"] <= step["90%"]
    assert step["useful frames/s"] == pytest.approx(1e3 * (40 + 48) / step["step, ms"])
    assert step["kernels"] > 100
    assert 0 < step["of the ceiling"] < 1
    assert 0 < step["alignment"] < 1
    assert (step["idle"], step["launches"]) == ("-", "-")
    assert [(row["precision"], row["steps"]) for row in precisions] == [("bfloat16", 4), ("float32", 4)]
    losses = [row["loss"] for row in precisions]
    assert losses[0] != losses[1], "the same precision twice"
    assert losses[0] == pytest.approx(losses[1], rel=0.05)
    assert trained["steps"] >= 1
    assert trained["input wait"] + trained["outside"] <= 1
