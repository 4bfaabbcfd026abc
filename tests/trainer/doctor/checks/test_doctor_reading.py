"""Seeded faults of reading: slow shards, slow pipelines, a slow disk; none where there is none."""

import io
import re
import time

import numpy as np
import pytest

from xtts.trainer.doctor.checks import environment as environment_module
from xtts.trainer.doctor.checks.environment import environment, read_speed
from xtts.trainer.doctor.checks.loading import LoadTimes, data, disk_demand

WITH_MELS = "build a cache with mels: run xtts-precompute build without --index-only"


def load(*seconds):
    return LoadTimes(first=0.0, seconds=np.array(seconds))


def test_loading_that_is_slower_than_the_steps(only):
    times = load(0.55, 0.55, 0.56)
    assert only(data(times, step_seconds=None)).what == "loading is slow: 553 ms a batch, p95 559 ms, steady"
    assert only(data(times, step_seconds=0.1)).gain == "5.5 times the steps a second: one takes 100.0 ms"
    assert not data(times, step_seconds=2.0)[1]
    assert not data(load(0.4), step_seconds=None)[1]
    assert [load(seconds).verdict for seconds in (0.09, 0.4, 0.55)] == ["good", "moderate", "slow"]
    steadiness = {fact.name: fact for fact in data(load(*[0.001] * 30, 0.3), step_seconds=0.05)[0]}["load steadiness"]
    assert steadiness.value["verdict"] == "swings"  # one slow batch in many


@pytest.mark.parametrize(
    ("mel_on", "setting", "remedy"),
    [
        ("host", "data.mel_on", f"set data.mel_on to device; or {WITH_MELS}"),
        ("device", "", WITH_MELS),
    ],
)
def test_a_host_too_slow_for_audio_has_two_ways_out(only, mel_on, setting, remedy):
    finding = only(data(load(0.5), step_seconds=0.1, mel_on=mel_on))
    assert (finding.name, finding.setting, finding.remedy) == ("slow-audio", setting, remedy)
    assert finding.what.startswith("the host cannot keep up: loading is slow")
    assert only(data(load(0.5), step_seconds=0.1)).name == "slow-loading"
    assert not data(load(0.5), step_seconds=1.0, mel_on=mel_on)[1]


@pytest.fixture
def slow_reads(monkeypatch):
    """`slow_reads(delay)`: the doctor's reads of a file take `delay(path)` seconds more."""

    def start(delay):
        class SlowFile(io.FileIO):
            def read(self, size=-1):
                time.sleep(delay(self.name))
                return super().read(size)

        monkeypatch.setattr(environment_module, "open", lambda path, *_, **__: SlowFile(path), raising=False)

    return start


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    """(folder, files): four of 3 MiB, of which 2 MiB are read, and one of 1 KiB."""
    folder = tmp_path_factory.mktemp("shards")
    files = [folder / f"shard-{number}" for number in range(5)]
    for file in files:
        file.write_bytes(bytes(3 << 20) if file != files[4] else bytes(1 << 10))
    return folder, files


def test_a_slow_shard_is_named(shards, slow_reads, only):
    folder, files = shards
    slow_reads(lambda path: 0.2 * (path == files[2]))
    speed = read_speed(files)
    assert speed.bytes == 4 * (2 << 20) + (1 << 10)
    finding = only(environment(folder, speed))
    assert finding.section == "environment"
    assert re.fullmatch(r"slow to read: shard-2 at [\d.]+ MiB/s; a typical shard is read at [\d,]+ MiB/s", finding.what)
    assert finding.cause == "its disk is throttled, failing in places, or slower than the disk of the others"
    assert finding.remedy == f"copy {folder} to another disk, and check the health of this one"
    assert re.fullmatch(r"0\.[34] s less reading in every epoch that reads from the disk", finding.gain)


@pytest.mark.parametrize("kind", ["far away", "busy for a moment"])
def test_sound_shards_have_no_finding(shards, slow_reads, kind):
    folder, files = shards
    reads = []

    def delay(path):
        reads.append(path)
        return {
            "far away": 0.3,  # by its bytes a second the small shard would seem thousands of times slower
            "busy for a moment": 0.3 * (reads.count(files[2]) == 1 and path == files[2]),
        }[kind]

    slow_reads(delay)
    assert not environment(folder, read_speed(files))[1]
    assert reads.count(files[2]) == (4 if kind == "busy for a moment" else 1)


def test_a_disk_that_cannot_keep_up(only):
    asked = {"batch_bytes": 50e6, "cache_bytes": 10**12, "free_memory": 10**10, "step_seconds": 0.1}
    assert "the disk reads 95" in only(disk_demand(1e8, **asked)).what
    assert not disk_demand(1e9, **asked)[1]
    assert not disk_demand(1e8, **{**asked, "cache_bytes": 10**9})[1]
