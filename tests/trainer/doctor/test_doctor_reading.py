"""Seeded faults of reading: slow pipelines; none where there is none."""

import numpy as np
import pytest

from xtts.trainer.doctor.speed import loading

WITH_MELS = "build a cache with mels: run xtts-precompute build without --index-only"


def load(*seconds):
    return 0.0, np.array(seconds)


def test_loading_that_is_slower_than_the_steps(only):
    times = load(0.55, 0.55, 0.56)
    what = "loading is slow: mean 553.3 ms, p95 559.0 ms a batch, steady"
    assert only(loading(*times, step_seconds=None)).what == what
    assert only(loading(*times, step_seconds=0.1)).gain == "5.5 times the steps a second: one takes 100.0 ms"
    assert not loading(*times, step_seconds=2.0)[1]
    assert not loading(*load(0.4), step_seconds=None)[1]
    facts = [loading(*load(seconds), step_seconds=None)[0][0] for seconds in (0.09, 0.4, 0.55)]
    assert [fact.value["verdict"] for fact in facts] == ["good", "moderate", "slow"]
    steadiness = {fact.name: fact for fact in loading(*load(*[0.001] * 30, 0.3), step_seconds=0.05)[0]}[
        "load steadiness"
    ]
    assert steadiness.value["verdict"] == "swings"  # one slow batch in many


@pytest.mark.parametrize(
    ("mel_on", "setting", "remedy"),
    [
        ("host", "data.mel_on", f"set data.mel_on to device; or {WITH_MELS}"),
        ("device", "", WITH_MELS),
    ],
)
def test_a_host_too_slow_for_audio_has_two_ways_out(only, mel_on, setting, remedy):
    problem = only(loading(*load(0.5), step_seconds=0.1, mel_on=mel_on))
    assert (problem.name, problem.setting, problem.remedy) == ("slow-audio", setting, remedy)
    assert problem.what.startswith("the host cannot keep up: loading is slow")
    assert only(loading(*load(0.5), step_seconds=0.1)).name == "slow-loading"
    assert not loading(*load(0.5), step_seconds=1.0, mel_on=mel_on)[1]
