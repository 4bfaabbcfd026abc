"""The commands: output, one-line errors, exit codes, and what they import."""

import json
import multiprocessing
import subprocess
import sys
from pathlib import Path

import pytest
from builds import command
from click.testing import Result


def build(data: Path, cache: Path, *options: object) -> Result:
    return command("build", "--data", data, "--cache", cache, "--workers", 0, *options)


def test_build_verify_and_stats(tiny_corpus, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = build(tiny_corpus, "features", "--set", "shapes.buckets=2")
    assert done.exit_code == 0, done.stderr
    assert "24 clips kept (0.01 h), 0 rejected" in done.stdout
    assert "shards written, 0 kept" in done.stdout
    lines = [line.split() for line in done.stdout.splitlines()]
    start = next(number for number, line in enumerate(lines) if line[0] == "bucket")
    table = lines[start : start + 3]
    assert table[0] == ["bucket", "tokens", "frames", "train", "validation", "shards", "efficiency"]
    assert sum(int(line[3]) + int(line[4]) for line in table[1:]) == 24
    assert all(50.0 < float(line[6].rstrip("%")) <= 100.0 for line in table[1:])
    assert "features: 24/24 clips" in done.stderr
    assert "x real time" in done.stderr
    assert "nothing to do" in build(tiny_corpus, "features", "--set", "shapes.buckets=2").stdout
    for arguments in (["--cache"], [], ["--cache", "features"]):
        sound = command("verify", *arguments)
        assert (sound.exit_code, sound.stdout) == (0, "features: sound\n")
    figures = command("stats")
    assert figures.exit_code == 0
    assert figures.stdout.splitlines()[2].split() == ["percentile", "50%", "90%", "95%", "99%", "99.9%", "max"]
    shard = next(Path("features").rglob("*.tfrecord"))
    shard.write_bytes(shard.read_bytes()[:-1])
    unsound = command("verify")
    assert unsound.exit_code == 1
    assert f"{shard.relative_to('features')}: truncated" in unsound.stdout


def test_familiar_flags_reach_the_configuration(tiny_corpus, tmp_path):
    flags = ["--max-mel-frames", "500", "--max-text-length", "99", "--no-enable-static-shapes"]
    assert build(tiny_corpus, tmp_path, *flags).exit_code == 0
    spec = json.loads((tmp_path / "cache.json").read_text())
    shapes = spec["features"]["shapes"]
    assert (shapes["max_mel_frames"], shapes["max_text_length"], spec["fixed_length"]) == (500, 99, False)


def test_mistakes_are_one_line_with_the_right_code(tiny_corpus, tmp_path):
    cache, none = tmp_path / "features", tmp_path / "none"
    (tmp_path / "metadata.csv").write_text("a|x\n")
    for done, code, message in (
        (build(none, cache), 2, "no such folder"),
        (command("build", "--data", none, "--cache", cache, "--workers", 1), 2, "no such folder"),
        (build(tiny_corpus, cache, "--set", "audio.profile=mp3"), 2, "expected one of bigvgan24, hifigan"),
        (command("verify", "--cache", none), 2, "expected a cache; run xtts-precompute build"),
        (command("stats", "--cache", none), 2, "expected a cache"),
        (build(tmp_path, tmp_path / "other"), 1, "all 1 clips are rejected: 1 missing audio (a)"),
    ):
        assert done.exit_code == code, done.stderr
        (error,) = (line for line in done.stderr.splitlines() if line.startswith("error: "))
        assert error == done.stderr.splitlines()[-1]
        assert message in error
    assert multiprocessing.active_children() == []
    assert not cache.exists()


@pytest.mark.parametrize(("modules", "without"), [
    ("cli, pipeline.build_cache, check.against_corpus, view.terminal", "tensorflow librosa numba torch"),
    ("pipeline.write, pipeline.scan, workers.worker_pool", "tensorflow librosa rich"),  # a worker
])
def test_what_is_not_imported(modules, without):
    imports = "".join(f"import xtts.precompute.{module}\n" for module in modules.split(", "))
    code = f"import sys\n{imports}print([name for name in {without.split()} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
