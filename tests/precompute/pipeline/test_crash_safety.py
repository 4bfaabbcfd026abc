"""A build that is stopped anywhere is finished by the next one, to the same bytes."""

import itertools
import os
import resource
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from builds import PROGRAM, Listener, build, children, start, tree, wait_for

from xtts.precompute.check.verify import check_cache
from xtts.shared.cache.cache_spec import load_spec
from xtts.shared.config_files import load_config
from xtts.shared.errors import LockstepError

SETTINGS = {"shapes.buckets": 6, "split.validation_fraction": 0.2, "text.tokenizer": "characters"}
CONFIG, OTHER = load_config("tiny", flags=SETTINGS), load_config("tiny", flags={"text.add_blank": False})
HALTED = f"""
import time
from xtts.precompute.pipeline.staging import StagingArea

def stage_and_wait(*given, stage=StagingArea.stage, **options):
    done = stage(*given, **options)
    print("staged", flush=True)
    time.sleep(60)
    return done

StagingArea.stage = stage_and_wait
{PROGRAM}
"""
"""The command, which stops after its first shard."""


@pytest.fixture(scope="module")
def corpora(tone_corpus, tmp_path_factory) -> list[str]:
    """Three clips, so that every step can be tried: two of one corpus and one of another."""
    folder = tmp_path_factory.mktemp("crash")
    return [f"{name}={tone_corpus(folder / name, clips, seed=clips)}" for name, clips in (("a", 2), ("b", 1))]


def whole(data: object, folder: Path) -> dict[str, bytes]:
    """The cache of an undisturbed build."""
    build(data, folder / "whole", CONFIG)
    return tree(folder / "whole")


class Crash(BaseException):
    """What a power cut looks like from inside."""


@contextmanager
def power_cut(step: int) -> Iterator[None]:
    """Die at the given rename or deletion; no file may be renamed that did not reach the disk before."""
    calls, synced, replace, fsync, unlink = itertools.count(1), set[int](), os.replace, os.fsync, Path.unlink

    def strike() -> None:
        if next(calls) == step:
            raise Crash

    def checked_replace(source: Path, target: Path) -> None:
        strike()
        assert os.stat(source).st_ino in synced, f"{source} was renamed before it was synced"
        replace(source, target)

    def noted_fsync(descriptor: int) -> None:
        synced.add(os.fstat(descriptor).st_ino)
        fsync(descriptor)

    def counted_unlink(path: Path, missing_ok: bool = False) -> None:
        strike()
        unlink(path, missing_ok=missing_ok)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "replace", checked_replace)
        patch.setattr(os, "fsync", noted_fsync)
        patch.setattr(Path, "unlink", counted_unlink)
        yield


@pytest.mark.parametrize("again", [False, True])
def test_every_step_may_be_the_last(corpora, tmp_path, again):
    """Of a first build, or of one for other settings: then the old cache or the new one is complete."""
    new, written = whole(corpora, tmp_path), list[int]()
    build(corpora, tmp_path / "old", OTHER)
    old, died = tree(tmp_path / "old"), True
    while died:
        cache, died = tmp_path / f"cache-{len(written)}", False
        if again:
            shutil.copytree(tmp_path / "old", cache)
        try:
            with power_cut(len(written) + 1):
                build(corpora, cache, CONFIG)
        except Crash:
            died = True
        assert (cache / "cache.json").exists() >= again
        if (cache / "cache.json").exists():
            assert check_cache(cache, threads=1) == []
            is_old = again and load_spec(cache) == load_spec(tmp_path / "old")
            assert tree(cache).items() >= (old if is_old else new).items()
        written.append(build(corpora, cache, CONFIG).written_shards)
        assert tree(cache) == new
    assert len(written) > 10
    assert written == sorted(written, reverse=True)  # a shard that is finished is kept
    assert (written[0], written[-2]) == (3, 0)


def test_a_staged_shard_that_is_cut_off_is_written_again(corpora, tmp_path):
    with pytest.raises(Crash), power_cut(7):
        build(corpora, tmp_path / "cache", CONFIG)
    (staged, *_) = (tmp_path / "cache").rglob("shard-*.tfrecord")
    os.truncate(staged, 100)
    assert build(corpora, tmp_path / "cache", CONFIG).written_shards == 2
    assert tree(tmp_path / "cache") == whole(corpora, tmp_path)


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, *(pytest.param(n, marks=pytest.mark.long) for n in (signal.SIGINT, signal.SIGKILL))]
)
def test_a_signal_ends_the_build_and_says_how_to_continue(tiny_corpus, tmp_path, number):
    cache, said = tmp_path / "cache", Listener()
    process = start(tiny_corpus, cache, SETTINGS, "--workers=1", program=HALTED)
    assert process.stdout.readline() == "staged\n"
    workers = children(process.pid)
    process.send_signal(number)
    _, errors = process.communicate()
    if number != signal.SIGKILL:
        assert process.returncode == 128 + number
        assert f"cache: stopped by {number.name}; run the same command again to continue" in errors
        assert "Traceback" not in errors
    assert workers
    wait_for(lambda: not any(Path(f"/proc/{pid}/exe").exists() for pid in workers))
    assert not (cache / "cache.json").exists()
    assert build(tiny_corpus, cache, CONFIG, progress=said).kept_shards == 1
    assert any("of an interrupted build" in line for line in said.lines)
    assert tree(cache) == whole(tiny_corpus, tmp_path)


def test_an_interrupt_while_workers_start_is_one_line(tiny_corpus, tmp_path):
    process = start(tiny_corpus, tmp_path / "cache", SETTINGS, "--workers=2", start_new_session=True)

    def runs_python(pid: int) -> bool:
        return "lib-dynload" in Path(f"/proc/{pid}/maps").read_text()

    wait_for(lambda: sum(map(runs_python, children(process.pid))) == 3)  # two, and what tracks their semaphores
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate()
    assert process.returncode == 130
    assert "cache: stopped by SIGINT" in errors.splitlines()[-1]
    assert "Traceback" not in errors


def test_a_full_disk_is_one_line_and_a_rerun_continues(tiny_corpus, tmp_path):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, before[1]))
    try:
        with pytest.raises(LockstepError) as full:
            build(tiny_corpus, tmp_path / "cache", CONFIG)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "cannot be read or written (File too large); free some space and run the same command" in str(full.value)
    assert full.value.exit_code == 1
    build(tiny_corpus, tmp_path / "cache", CONFIG)
    assert tree(tmp_path / "cache") == whole(tiny_corpus, tmp_path)


def test_too_little_space_is_said_before_anything_is_written(tiny_corpus, tmp_path, monkeypatch):
    usage = type("Usage", (), {"free": 1000})
    monkeypatch.setattr("xtts.precompute.workers.disks.shutil.disk_usage", lambda _: usage)
    with pytest.raises(LockstepError, match="0 MiB free, expected 0 MiB for the new shards") as caught:
        build(tiny_corpus, tmp_path / "cache", CONFIG)
    assert caught.value.exit_code == 1
    assert not any((tmp_path / "cache").rglob("*.tfrecord"))
