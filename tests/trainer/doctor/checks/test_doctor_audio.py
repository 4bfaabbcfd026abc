"""The doctor on caches without mels: the two ways out where the host is slow, other recordings, other mels."""

import shutil

import numpy as np
import pytest

from xtts.precompute.build.build_cache import build_cache
from xtts.precompute.workers.progress import NullProgress
from xtts.trainer.doctor.checks import audio as audio_module
from xtts.trainer.doctor.checks.audio import mel_parity
from xtts.trainer.doctor.checks.loading import LoadTimes, data
from xtts.trainer.doctor.subject import load_subject

SLOW = LoadTimes(first=0.0, seconds=np.array([0.5, 0.5, 0.51]))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory, tiny_corpus):
    """A copy whose wavs may go away."""
    return shutil.copytree(tiny_corpus, tmp_path_factory.mktemp("doctored") / "corpus")


@pytest.fixture(scope="module")
def subject(tmp_path_factory, corpus, tiny_config):
    """Its cache without mels, as the doctor loads it."""
    cache = tmp_path_factory.mktemp("indexed") / "features"
    build_cache(corpus, cache, tiny_config, workers=0, progress=NullProgress(), index_only=True)
    settings = ["shapes.buckets=2", "split.validation_fraction=0.1", "training.batch_size=3"]
    return load_subject((), settings, {}, cache)


def test_a_slow_host_has_two_ways_out(only):
    host = only(data(SLOW, step_seconds=0.1, mel_on="host"))
    assert (host.name, host.setting, host.value) == ("slow-audio", "data.mel_on", "device")
    assert host.what.startswith("the host cannot keep up: loading is slow")
    assert host.remedy == (
        "set data.mel_on to device; or build a cache with mels: run xtts-precompute build without --index-only"
    )
    device = only(data(SLOW, step_seconds=0.1, mel_on="device"))
    assert device.remedy == "build a cache with mels: run xtts-precompute build without --index-only"
    assert only(data(SLOW, step_seconds=0.1)).name == "slow-loading"
    assert not data(SLOW, step_seconds=1.0, mel_on="host")[1]


def test_mels_agree_and_other_recordings_are_found(subject, corpus, only, monkeypatch):
    facts, findings = mel_parity(subject)
    assert not findings
    assert facts[0].value["clips"] == 16
    assert 0 < facts[0].value["largest_difference"] < 1e-3
    computed = audio_module.log_mel
    with monkeypatch.context() as patched:
        patched.setattr(audio_module, "log_mel", lambda samples, profile: computed(samples, profile) + 0.002)
        assert only(mel_parity(subject)).what.startswith("mels differ from stage 1's by 2.")
    shutil.rmtree(corpus / "wavs")
    assert only(mel_parity(subject)).what == "16 of 16 clips cannot be read"
