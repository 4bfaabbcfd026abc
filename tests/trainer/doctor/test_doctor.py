"""The command: on what is healthy, with the steps that this process compiled; on what is not, as its users call it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from xtts.precompute.build.build_cache import build_cache
from xtts.precompute.workers.progress import NullProgress
from xtts.shared.config_files import load_config
from xtts.trainer.doctor.cli import main

XTTS_DOCTOR = Path(sys.executable).with_name("xtts-doctor")


def run(*arguments):
    """(exit code, stdout, stderr) of xtts-doctor."""
    command = [str(part) for part in (XTTS_DOCTOR, *arguments)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "Traceback" not in result.stderr, result.stderr
    return result.returncode, result.stdout, result.stderr


def assignments(*settings):
    return [part for setting in settings for part in ("--set", setting)]


@pytest.fixture(scope="module")
def healthy(micro, tone_corpus, call, tmp_path_factory):
    """(exit code, JSON, overlay file) of a healthy set-up: clips of like lengths in one shape."""
    folder = tmp_path_factory.mktemp("healthy")
    cache, overlay = folder / "features", folder / "advice.yaml"
    corpus = tone_corpus(folder / "corpus", 24, seconds=(1.5, 1.55))
    shapes = {"shapes.buckets": 1, "split.validation_fraction": 0.1}
    build_cache(corpus, cache, load_config("tiny", flags=shapes), workers=0, progress=NullProgress())
    # As many steps a call, and between pauses, as by default: those of so small a model are soon over. A wider decoder,
    # whose steps are longer than a batch takes to load.
    more = ["training.steps_per_call=50", "training.validate_every=500", "training.checkpoint_every=500"]
    settings = assignments(*micro, "shapes.buckets=1", "model.decoder_width=256", *more)
    options = ["--cache", cache, *settings, "--steps", 12, "--json", "--apply", overlay]
    code, out, _ = call(main, *options)
    return code, json.loads(out), overlay


def test_a_healthy_set_up_has_no_finding(healthy):
    code, report, overlay = healthy
    assert report["advice"] == []
    assert code == 0
    assert report["healthy"]
    assert list(report["sections"]) == ["environment", "config", "shapes", "data", "steps", "graph"]
    assert not overlay.exists()


def test_the_steps_of_a_run_are_profiled(micro, tiny_cache, call, tmp_path):
    arguments = ["profile", "--cache", tiny_cache, *assignments(*micro), "--steps", 3, "--json", "--out"]
    code, out, err = call(main, *arguments, tmp_path / "trace")
    assert code == 0, err
    facts = json.loads(out)["sections"]["profile"]["facts"]
    assert facts["steps"]["count"] == 3
    assert 0 < facts["device busy"] <= 1
    assert 0 <= facts["input wait"] < 1
    assert facts["top ops"] > 0
    assert list((tmp_path / "trace" / "plugins" / "profile").glob("*/*.xplane.pb"))


def test_every_section_measured_something(healthy):
    facts = {name: section["facts"] for name, section in healthy[1]["sections"].items()}
    assert facts["environment"]["xla"]["works"]
    assert facts["environment"]["disk"]["bytes_per_second"] > 1e6
    assert facts["config"]["features"] == []
    assert 1 << 18 < facts["config"]["memory"]["step_bytes"] < facts["config"]["memory"]["available_bytes"]
    assert facts["shapes"]["batches read"] >= 3
    assert facts["data"]["load time"]["verdict"] == "good"
    assert 0 <= facts["data"]["input wait"] < 1
    assert 0 < facts["steps"]["step time"]["p50"] <= facts["steps"]["step time"]["p95"]
    assert facts["steps"]["step time"]["steps"] == 12
    assert facts["steps"]["traces"] == 1
    arithmetic = facts["steps"]["model FLOP/s"]
    assert 0 < arithmetic["reached"] < 2 * arithmetic["ceilings"]["float32"]
    assert facts["graph"]["steps"] > 1000


@pytest.fixture(scope="module")
def sick(micro, tiny_cache, call, tmp_path_factory):
    """(exit code, page, overlay file) of a configuration with three faults; nothing is compiled."""
    overlay = tmp_path_factory.mktemp("overlay") / "advice.yaml"
    faults = ("training.batch_size=1", "shapes.buckets=4", "shapes.max_mel_frames=60")
    options = ["--cache", tiny_cache, *assignments(*micro, *faults), "--steps", 0, "--apply", overlay]
    code, out, _ = call(main, *options)
    return code, " ".join(out.split()), overlay


def test_faults_of_the_configuration_are_found_and_named(sick):
    code, page, _ = sick
    assert code == 1
    assert "shapes.buckets is 4, the cache was built with 2" in page
    assert "set shapes.buckets to 2" in page
    assert "shapes.max_mel_frames 60 rejects" in page
    assert "training.batch_size is 1: a step works on a single clip" in page
    assert "✓ environment" in page
    assert "! config" in page


def test_the_overlay_fixes_the_configuration(sick, micro):
    fixed = load_config("tiny", overlays=[str(sick[2])])
    assert fixed.shapes.buckets == 2
    assert fixed.shapes.max_mel_frames is None
    assert fixed.training.batch_size > 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--cache", "nowhere"), "nowhere/cache.json: no such folder, expected a cache"),
        (("--config", "tinny"), "tinny: cannot be read"),
    ],
)
def test_what_cannot_be_examined_is_unusable(arguments, message):
    code, out, err = run(*arguments)
    assert code == 2
    assert message in err
    assert not out


def test_a_damaged_cache_is_unusable(tiny_cache, micro, tmp_path):
    (tmp_path / "features").mkdir()
    (tmp_path / "features" / "cache.json").write_text("{")
    code, _, err = run("--cache", tmp_path / "features", *assignments(*micro))
    assert code == 2
    assert "cannot be read" in err
    assert sorted(os.listdir(tmp_path / "features")) == [".readers", "cache.json"]
