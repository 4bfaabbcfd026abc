"""A build that is stopped anywhere is finished by the next one, to the same bytes."""

import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from xtts.precompute.build.build_cache import build_cache
from xtts.precompute.workers.pool import WorkerPool
from xtts.precompute.workers.progress import NullProgress
from xtts.shared.cache.cache_spec import load_spec
from xtts.shared.cache.quick_check import full_check
from xtts.shared.config import Config
from xtts.shared.config_files import load_config
from xtts.shared.errors import LockstepError

COMMAND = [sys.executable, "-c", "from xtts.precompute.cli import main; main()", "build"]
SETTINGS = {"shapes.buckets": 6, "split.validation_fraction": 0.2}


@pytest.fixture(scope="module")
def config() -> Config:
    return load_config("tiny", flags=SETTINGS)


@pytest.fixture(scope="module")
def corpus(tone_corpus, tmp_path_factory) -> Path:
    return tone_corpus(tmp_path_factory.mktemp("crash") / "corpus", 80, seed=3)


@pytest.fixture(scope="module")
def whole(corpus, config, tmp_path_factory) -> dict[str, bytes]:
    """The cache of a build that nobody disturbed."""
    cache = tmp_path_factory.mktemp("whole") / "cache"
    build_cache(corpus, cache, config, workers=0, progress=NullProgress())
    return tree(cache)


def tree(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def start(corpus: Path, cache: Path, workers: int, **options: object) -> subprocess.Popen[str]:
    settings = [part for key, value in SETTINGS.items() for part in ("--set", f"{key}={value}")]
    arguments = ["--data", corpus, "--cache", cache, "--workers", workers, *settings]
    return subprocess.Popen(
        [*COMMAND, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )


def wait_for(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


def workers_of(cache: Path) -> list[int]:
    """Processes that still have a file of the cache open."""
    found = []
    for folder in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if str(cache) in os.readlink(folder):
                found.append(int(folder.parts[2]))
        except OSError:
            continue
    return found


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_build_and_says_how_to_continue(corpus, whole, tmp_path, number):
    cache = tmp_path / "cache"
    process = start(corpus, cache, 1)
    wait_for(lambda: any((cache / ".building").glob("*/bucket-*/*.arrow")))
    process.send_signal(number)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 128 + number
    assert f"cache: stopped by {number.name}; run the same command again to continue" in errors
    assert "Traceback" not in errors
    assert not (cache / "cache.json").exists()
    again = start(corpus, cache, 2)
    output, errors = again.communicate(timeout=60)
    assert again.returncode == 0, errors
    assert "an interrupted build left" in errors
    assert ", 0 kept" not in output
    assert tree(cache) == whole


def test_a_killed_builder_leaves_no_lock_and_no_worker(corpus, tmp_path):
    cache = tmp_path / "cache"
    process = start(corpus, cache, 2)
    wait_for(lambda: any((cache / ".building").glob("*/bucket-*/*.arrow")))
    process.send_signal(signal.SIGSTOP)
    refused = start(corpus, cache, 1)
    assert "another process is at work in this folder" in refused.communicate(timeout=30)[1]
    assert refused.returncode == 2
    process.kill()
    process.communicate()
    wait_for(lambda: not workers_of(cache))
    again = start(corpus, cache, 1)
    again.communicate(timeout=60)
    assert again.returncode == 0


def test_a_disk_that_takes_no_more_is_one_line_and_a_rerun_continues(corpus, whole, tmp_path):
    cache = tmp_path / "cache"

    def limit_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))

    full = start(corpus, cache, 1, preexec_fn=limit_files)
    _, errors = full.communicate(timeout=60)
    assert full.returncode == 1
    assert "cannot be read or written (File too large); free some space and run the same command again" in errors
    assert "Traceback" not in errors
    again = start(corpus, cache, 1)
    assert again.communicate(timeout=60)[1]
    assert tree(cache) == whole


def test_too_little_space_is_said_before_anything_is_written(corpus, config, tmp_path, monkeypatch):
    usage = type("Usage", (), {"free": 1000})
    monkeypatch.setattr("xtts.precompute.workers.stopping.shutil.disk_usage", lambda _: usage)
    with pytest.raises(LockstepError, match="0 MiB free, expected 1 MiB for the new shards") as caught:
        build_cache(corpus, tmp_path / "cache", config, workers=0, progress=NullProgress())
    assert caught.value.exit_code == 1
    assert not any((tmp_path / "cache").rglob("*.tfrecord"))


class Crash(BaseException):
    """What a power cut looks like from inside."""


SYNCED: set[int] = set()
"""Inodes that reached the disk, in whichever attempt."""


def crash_at(monkeypatch: pytest.MonkeyPatch, call: int) -> None:
    """Die at the given rename or deletion of the builder; no file may be renamed that was not synced."""
    calls, real = [0], {name: getattr(os, name) for name in ("replace", "fsync")}

    def strike() -> None:
        calls[0] += 1
        if calls[0] == call:
            raise Crash

    def replace(source: Path, target: Path) -> None:
        strike()
        assert os.stat(source).st_ino in SYNCED, f"{source} was renamed before it was synced"
        real["replace"](source, target)

    def fsync(descriptor: int) -> None:
        SYNCED.add(os.fstat(descriptor).st_ino)
        real["fsync"](descriptor)

    unlink = Path.unlink

    def counted_unlink(path: Path, missing_ok: bool = False) -> None:
        strike()
        unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(os, "replace", replace)
    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(Path, "unlink", counted_unlink)


def interrupted(corpus: Path, cache: Path, config: Config, call: int) -> bool:
    """Whether the build died at that call."""
    with pytest.MonkeyPatch.context() as patch:
        crash_at(patch, call)
        try:
            build_cache(corpus, cache, config, workers=0, progress=NullProgress(), pool=WorkerPool(1))
        except Crash:
            return True
    return False


def test_every_step_of_a_first_build_may_be_the_last(corpus, config, whole, tmp_path):
    # One chain: each attempt continues what the last one left and dies one step later than it had to.
    call = 1
    while interrupted(corpus, tmp_path / "cache", config, call):
        if (tmp_path / "cache" / "cache.json").exists():
            assert tree(tmp_path / "cache").items() >= whole.items()
        call += 2
    assert call > 10
    assert tree(tmp_path / "cache") == whole


@pytest.mark.long
def test_every_step_of_a_rebuild_may_be_the_last(corpus, config, whole, tmp_path):
    before = load_config("tiny", flags={**SETTINGS, "text.add_blank": True, "shapes.buckets": 3})
    for call in range(1, 200, 4):
        cache = tmp_path / f"cache-{call}"
        build_cache(corpus, cache, before, workers=0, progress=NullProgress())
        good = tree(cache)
        died = interrupted(corpus, cache, config, call)
        spec = load_spec(cache)  # the old cache or the new one, whole, wherever it died
        full_check(cache, spec)
        assert tree(cache).items() >= (good if len(spec.buckets) == 3 else whole).items()
        report = build_cache(corpus, cache, config, workers=0, progress=NullProgress())
        assert tree(cache) == whole
        if not died:
            assert call > 40
            assert report.written_shards == 0
            return
    pytest.fail("the build never came to its end")


@pytest.mark.long
def test_kill_9_at_25_random_moments(corpus, whole, tmp_path):
    generator = random.Random(0)
    begun = time.monotonic()
    start(corpus, tmp_path / "timing", 1).communicate()
    duration = time.monotonic() - begun
    kills, cache = 0, tmp_path / "cache-0"
    while kills < 25:
        process = start(corpus, cache, generator.choice([1, 2, 5]))
        try:
            process.communicate(timeout=generator.uniform(0.1, duration))
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            kills += 1
            if kills % 5:
                continue  # the next attempt goes on from here
        final = start(corpus, cache, generator.choice([1, 2, 5]))
        _, errors = final.communicate(timeout=120)
        assert final.returncode == 0, errors
        assert tree(cache) == whole
        cache = tmp_path / f"cache-{kills}-{generator.random()}"
