"""The commands as processes: output, one-line errors, exit codes, start-up time."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = [sys.executable, "-c", "from xtts.precompute.cli import main; main()"]


def run(*arguments: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *map(str, arguments)], capture_output=True, text=True, cwd=cwd, timeout=120, check=False
    )


def error_of(*arguments: str | Path, code: int) -> str:
    done = run(*arguments)
    assert done.returncode == code, done.stderr
    lines = done.stderr.splitlines()
    assert len([line for line in lines if line.startswith("error: ")]) == 1
    assert "Traceback" not in done.stderr
    return lines[-1]


@pytest.mark.parametrize("command", ["build", "verify", "stats", "inspect", "report", "sample-corpus"])
def test_every_command_has_help(command):
    done = run(command, "--help")
    assert done.returncode == 0
    assert f"{command} [OPTIONS]" in done.stdout


def test_build_verify_and_stats(tiny_corpus, tmp_path):
    cache = tmp_path / "features"
    done = run("build", "--data", tiny_corpus, "--cache", cache, "--set", "shapes.buckets=2", "--workers", "1")
    assert done.returncode == 0, done.stderr
    assert "24 clips kept (0.01 h), 0 rejected" in done.stdout
    assert "shards written, 0 kept" in done.stdout
    table = [line.split() for line in done.stdout.splitlines()[1:4]]
    assert table[0] == ["bucket", "tokens", "frames", "train", "validation", "shards", "efficiency"]
    assert sum(int(line[3]) + int(line[4]) for line in table[1:]) == 24
    assert all(50.0 < float(line[6].rstrip("%")) <= 100.0 for line in table[1:])
    assert "features: 24/24 clips" in done.stderr
    assert "x real time" in done.stderr
    again = run("build", "--data", tiny_corpus, "--cache", cache, "--set", "shapes.buckets=2")
    assert "nothing to do" in again.stdout
    for arguments in (["verify", "--cache"], ["verify"], ["verify", "--cache", "features"]):
        sound = run(*arguments, cwd=tmp_path)
        assert (sound.returncode, sound.stdout) == (0, "features: sound\n")
    figures = run("stats", "--max-mel-frames", "60", cwd=tmp_path)
    assert figures.returncode == 0
    assert figures.stdout.splitlines()[2].split() == ["percentile", "50%", "90%", "95%", "99%", "99.9%", "max"]
    assert "max_mel_frames would reject " in figures.stdout


def test_an_unsound_cache_exits_with_1(tiny_corpus, tmp_path):
    cache = tmp_path / "features"
    assert run("build", "--data", tiny_corpus, "--cache", cache, "--workers", "1").returncode == 0
    shard = next(cache.rglob("*.tfrecord"))
    shard.write_bytes(shard.read_bytes()[:-1])
    done = run("verify", "--cache", cache)
    assert done.returncode == 1
    assert f"{shard.relative_to(cache)}: truncated" in done.stdout


def test_familiar_flags_reach_the_configuration(tiny_corpus, tmp_path):
    cache = tmp_path / "features"
    flags = ["--max-mel-frames", "500", "--max-text-length", "99", "--no-enable-static-shapes"]
    assert run("build", "--data", tiny_corpus, "--cache", cache, *flags).returncode == 0
    spec = json.loads((cache / "cache.json").read_text())
    shapes = spec["features"]["shapes"]
    assert (shapes["max_mel_frames"], shapes["max_text_length"], spec["fixed_length"]) == (500, 99, False)


def test_mistakes_are_one_line_with_the_right_code(tiny_corpus, tmp_path):
    cache = tmp_path / "features"
    build = ["build", "--data", tiny_corpus, "--cache", cache]
    assert "no such folder" in error_of("build", "--data", tmp_path / "none", "--cache", cache, code=2)
    assert "unknown key shapes.bucket; did you mean shapes.buckets?" in error_of(
        *build, "--set", "shapes.bucket=2", code=2
    )
    assert "expected one of bigvgan24, hifigan" in error_of(*build, "--set", "audio.profile=mp3", code=2)
    assert "cannot be read" in error_of(*build, "--config", "nosuch.yaml", code=2)
    assert "expected a cache; run xtts-precompute build" in error_of("verify", "--cache", tmp_path / "none", code=2)
    assert "expected a cache" in error_of("stats", "--cache", tmp_path / "none", code=2)
    assert not cache.exists()


def test_a_corpus_of_rejects_exits_with_1(tmp_path):
    (tmp_path / "metadata.csv").write_text("a|x\n")
    line = error_of("build", "--data", tmp_path, "--cache", tmp_path / "features", code=1)
    assert "all 1 clips are rejected: 1 missing audio (a)" in line


def test_neither_tensorflow_nor_librosa_is_imported(tiny_corpus, tmp_path):
    code = (
        "import sys; from pathlib import Path; from xtts.precompute import cli;"
        "from xtts.precompute.build import build_cache; from xtts.precompute.check import verify, against_corpus;"
        "from xtts.precompute.view import terminal;"
        "print([m for m in ('tensorflow', 'librosa', 'numba', 'torch') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_workers_import_neither_rich_nor_pydantic():
    code = (
        "import sys; from xtts.precompute.features import extract, scan; from xtts.precompute.workers import pool;"
        "print([m for m in ('tensorflow', 'librosa', 'rich', 'pydantic', 'pyarrow') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
