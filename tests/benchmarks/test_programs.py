"""Every program that measures builds, training or speech runs to its end and reports what it measured.

Speeds are for the machines that it is meant for.
"""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import forked_program
import numpy as np
import pytest

from xtts.shared.config_flags import resolve
from xtts.trainer.evaluation.judge import Judge, Utterance, Verdict
from xtts.trainer.loop.jax_runtime import JaxRuntime
from xtts.trainer.loop.step_names import training_step
from xtts.trainer.run.train_steps import ExportedSteps

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
    model = {"size": "tiny", **MICRO}
    path.write_text(json.dumps({"model": model, "shapes": {"buckets": 1}, "training": {"batch_size": 3}}))
    return path


def test_rebuild(measure, tmp_path):
    figures, page = measure("rebuild", "--clips", 12, "--rounds", 1, "--config", "tiny", "--work", tmp_path / "work")
    fresh, again, changed = figures["builds"].values()
    assert (again["written"], again["kept"]) == (0, fresh["written"])
    assert (changed["written"], changed["kept"]) == (1, fresh["written"] - 1)
    assert list(figures["seconds"]) == [*figures["builds"], "verify"]
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
    """By the judge without its models: the opinion is the loudest sample."""
    heard = list[tuple[list[Utterance], int]]()

    class Ear(Judge):
        def __init__(self, asr):
            self._jiwer = SimpleNamespace(cer=lambda *_: 0.5)

        def judge(self, spoken, rate, recorded):
            heard.append((spoken, rate))
            return super().judge(spoken, rate, recorded)

        def _verdict(self, samples, utterance, speakers):
            return Verdict(
                transcript="", character_error_rate=0.5, distillmos=4.0, dnsmos=np.abs(utterance.samples).max(),
                similarity=None, other_similarity=0.5,
            )  # fmt: skip

    monkeypatch.setattr("other_voices.Judge", Ear)
    voice = BENCHMARKS.parent / "voices" / "base"
    words = ["--cache", tiny_cache, "--data", tiny_corpus, "--limit", 2, "--sounds", tmp_path / "sounds"]
    figures, page = measure("other_voices", voice, *words, "--other", "hibari", sys.executable)
    recording, own, other = figures["table"]
    assert own["voice"].startswith("lockstep-tts ")
    assert own["parameters"] == "3.7M"
    assert float(own["real-time factor"]) > 0
    assert recording["real-time factor"] is None
    assert other["DNSMOS"] == "0.05", "of its level"
    assert [(len(spoken), rate) for spoken, rate in heard] == [
        (2, 22_050), (2, 22_050), (20, 22_050), (2, 8000), (20, 8000),
    ]  # fmt: skip
    assert {each.language for spoken, _ in heard for each in spoken} == {"en"}
    assert len({tuple(each.text for each in spoken) for spoken, _ in heard}) == 2
    assert (recording["DistillMOS, long"], other["DNSMOS, long"]) == (None, "0.05")
    assert "| hibari-tts 1.0 | " in page


@pytest.fixture
def exported(tiny_cache, tmp_path):
    """`exported(WORDS ...)`: a run of `tiny_cache` with these options and its steps."""

    def run(*words):
        folder = tmp_path / "exported"
        arguments = ["--cache", tiny_cache, "--out", folder, "--steps", 6, "--export-steps"]
        arguments += ["--init-from", "nothing", "--set", "shapes.buckets=2", "--set", "split.validation_fraction=0.1"]
        line = [sys.executable, "-c", "from xtts.trainer.cli import main; main()", *map(str, [*arguments, *words])]
        subprocess.run(line, check=True, stdout=subprocess.DEVNULL)
        return folder

    return run


def test_steps(measure, micro, exported):
    figures, page = measure("steps", exported("--config", micro), "--calls", 2, "--steps", 4)
    assert "by JAX" in figures["measured"]
    assert [row["step"] for row in figures["steps"]][:3] == [
        "update", "exchange of averages", "training step of bucket 01",
    ]  # fmt: skip
    assert all(float(row["device, ms"]) >= float(row["host, ms"]) > 0 for row in figures["steps"])
    assert figures["run"][0]["steps"] == 4
    assert "| training step of bucket 00 | " in page


def test_a_step_of_normal_launches_few_kernels(exported):
    """In float32: around each product in bfloat16 a CPU converts its operands, which a GPU does not."""
    from training_parts.kernels import count_kernels

    words = ["training.mixed_precision=float32", "training.batch_size=8"]
    run = exported("--config", "normal", *(part for word in words for part in ("--set", word)))
    steps = ExportedSteps(run / "steps", resolve([str(run / "config.yaml")], [], {}))
    runtime = JaxRuntime(steps.programs, {})
    runtime.compile(training_step(1))
    counted = count_kernels(runtime.optimised(training_step(1)))
    assert sum(loop.turns for loop in counted.loops) <= 60, "a sixteenth of the frames"
    assert counted.launched <= 2500


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
