"""A user's mistakes are reported in one line, before TensorFlow is imported; how a run ends."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from xtts.shared.cache.cache_spec import load_spec
from xtts.shared.config_files import dump_config, load_config

XTTS_TRAIN = Path(sys.executable).with_name("xtts-train")
FITTING = ["--set", "shapes.buckets=2", "--set", "split.validation_fraction=0.1", "--batch-size", "4"]


@pytest.fixture
def refused(tmp_path):
    """`refused(*arguments)`: (exit code, the one line of stderr) of xtts-train where TensorFlow cannot be imported."""
    (tmp_path / "trap").mkdir()
    (tmp_path / "trap" / "tensorflow.py").write_text("raise SystemExit('tensorflow was imported')\n")

    def run(*arguments):
        environment = os.environ | {"PYTHONPATH": str(tmp_path / "trap")}
        command = [str(part) for part in (XTTS_TRAIN, "--out", tmp_path / "run", *arguments)]
        result = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=tmp_path)
        assert "Traceback" not in result.stderr
        assert not (tmp_path / "run").exists()
        return result.returncode, result.stderr.strip()

    return run


@pytest.fixture
def cache(tmp_path, tiny_cache):
    return Path(shutil.copytree(tiny_cache, tmp_path / "features"))


def shard_of(cache):
    return min((cache / "train").rglob("*.tfrecord"))


def truncated(cache):
    shard_of(cache).write_bytes(shard_of(cache).read_bytes()[:-1])


@pytest.mark.parametrize("more", [[], ["--set", "shapes.max_reject_fraction=0.9"]])
def test_a_command_that_may_begin_imports_tensorflow(refused, cache, more):
    code, message = refused("--cache", cache, *FITTING, *more)
    assert (code, message) == (1, "tensorflow was imported")


def test_no_cache(refused):
    assert refused() == (
        2,
        "error: features/cache.json: no such folder, expected a cache; "
        "run xtts-precompute build --cache features --data <corpus> --config <size>",
    )


@pytest.mark.parametrize(("damage", "more", "code", "messages"), [
    (truncated, (), 1, ["shard-00000-of-", "truncated to"]),
    (
        lambda cache: None, ("--set", "shapes.buckets=4"), 2,
        ["built with shapes.buckets = 2, expected 4; run xtts-precompute build --cache {cache} --data",
         "--config <this configuration>, or train with --set shapes.buckets=2"],
    ),
], ids=["truncated", "other settings"])
def test_a_cache_that_cannot_be_trained_on(refused, cache, damage, more, code, messages):
    damage(cache)
    found, message = refused("--cache", cache, *FITTING, *more)
    assert found == code
    assert all(part.format(cache=cache) in message for part in messages)


def test_a_bucket_with_fewer_clips_than_micro_batches_is_named_with_the_fix(refused, cache):
    spec = load_spec(cache)
    few = min(bucket.clips("train") for bucket in spec.buckets)
    number = next(n for n, bucket in enumerate(spec.buckets) if bucket.clips("train") == few)
    micro = few + 1
    settings = (f"training.batch_size={micro}", f"training.gradient_accumulation_steps={micro}")
    code, message = refused("--cache", cache, *FITTING, *(part for value in settings for part in ("--set", value)))
    assert code == 2
    bucket = f"bucket {number:02d} ({spec.buckets[number].tokens} tokens, {spec.buckets[number].frames} frames)"
    assert f"{micro} micro-batches per update, but {bucket} has {few} training clips; set it to {few}" in message


def test_a_run_that_is_not_there(refused, cache):
    code, found = refused("--cache", cache, *FITTING, "--resume", "nowhere")
    assert (code, found.count("\n")) == (2, 0)
    assert "nowhere: no such folder, expected a run folder or one checkpoint" in found


def test_a_run_whose_cache_was_moved_asks_for_its_new_place(refused, cache, tmp_path):
    step = tmp_path / "old" / "checkpoints" / "step-1"
    step.mkdir(parents=True)
    (step / "checkpoint.json").write_text("{}")
    (tmp_path / "old" / "config.yaml").write_text(dump_config(load_config("tiny")))
    (tmp_path / "old" / "run.json").write_text(json.dumps({"cache": str(cache)}))
    cache.rename(tmp_path / "moved")
    code, found = refused("--resume", step)
    assert code == 2
    assert f"cache {cache}, which no longer exists, expected the cache of the run; give its new path with --" in found


def test_a_run_ends_with_where_its_voice_is_and_what_would_improve_it(finished_run):
    folder, screen = finished_run
    lines = screen[screen.index("checkpoints: ") :].splitlines()
    cache = Path(json.loads((folder / "run.json").read_text())["cache"])
    minutes = load_spec(cache).statistics.seconds / 60
    assert lines[1] == f"voice:       step 12, in {folder}/voice"
    assert lines[2] == f"to improve:  more recordings (it had {minutes:,.0f} minutes)"
    assert lines[4] == f"continue:    xtts-train --resume {folder} --steps N"
