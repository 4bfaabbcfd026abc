"""`data.filters`: what is broken on purpose is rejected with its figure, and a rebuild equals a fresh build."""

import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import soundfile
from builds import Listener, build, command, problems, rows_of, spoil, tree
from tables import cases

from xtts.shared.cache.cache_spec import load_spec
from xtts.shared.config_files import load_config

CASES = cases(__file__)

RATE, CLIPS = 22_050, 16
EVERY_FILTER = CASES["filters"]
BROKEN = CASES["broken"]
"""Reason, filter, and about what is measured."""


def syllables(number, rate=RATE):
    """Speech-like: bursts of 0.3 s, pauses of 0.2 s, noise at -60 dBFS."""
    time = np.arange(round((1.0 + 0.5 * (number % 3)) * rate)) / rate
    samples = np.where(time % 0.5 < 0.3, 0.25 * np.sin(2 * np.pi * (150 + 10 * number) * time), 0.0)
    return samples + 1e-3 * np.random.default_rng(number).standard_normal(len(samples))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Clips of which seven are broken, each in one way."""
    folder = tmp_path_factory.mktemp("quality") / "corpus"
    (folder / "wavs").mkdir(parents=True)
    broken = {
        1: lambda samples: samples + 10**-1.5 * np.random.default_rng(9).standard_normal(len(samples)),
        2: lambda samples: np.clip(samples * 6, -1, 1),
        3: lambda samples: np.pad(samples[: round(0.8 * RATE)], (0, round(0.8 * RATE))),
        4: lambda samples: samples * 0.02,
    }
    lines = []
    for number in range(CLIPS):
        name, rate = f"clip-{number:02d}", 16_000 if number == 5 else RATE
        samples = syllables(number, rate)
        text = "a" * round({6: 1, 7: 30}.get(number, 12) * len(samples) / rate)
        soundfile.write(folder / "wavs" / f"{name}.wav", broken.get(number, np.array)(samples), rate, subtype="PCM_16")
        lines.append(f"{name}|{text}|{text}|{'ab'[number % 2]}")
    (folder / "metadata.csv").write_text("\n".join(lines) + "\n")
    return folder


def update(corpus, cache, filters=()):
    flags = {"shapes.buckets": 2, "split.validation_fraction": 0.2, "shapes.max_reject_fraction": 0.9}
    flags |= {f"data.filters.{name}": limit for name, limit in dict(filters).items()}
    progress = Listener()
    return build(corpus, cache, load_config("tiny", flags=flags), progress=progress), progress


@pytest.fixture(scope="module")
def unfiltered(corpus, tmp_path_factory):
    """The cache without filters; do not change it."""
    cache = tmp_path_factory.mktemp("unfiltered") / "features"
    update(corpus, cache)
    return cache


@pytest.fixture(scope="module")
def filtered(corpus, tmp_path_factory):
    """The cache with every filter, built at once; do not change it."""
    cache = tmp_path_factory.mktemp("filtered") / "features"
    update(corpus, cache, EVERY_FILTER)
    return cache


@pytest.fixture
def copied(corpus, unfiltered, tmp_path):
    """(corpus, cache without filters) that a test may change."""
    return Path(shutil.copytree(corpus, tmp_path / "corpus")), Path(shutil.copytree(unfiltered, tmp_path / "features"))


def make_undecodable(corpus):
    for path in (corpus / "wavs").iterdir():
        spoil(path)


def test_each_broken_clip_is_rejected_with_filter_value_and_limit(filtered, corpus):
    rejected = {name: row for name, row in rows_of(filtered).items() if not row.is_kept}
    assert {name: row.reason for name, row in rejected.items()} == {n: b[0] for n, b in BROKEN.items()}
    for name, (_, setting, value) in BROKEN.items():
        detail = rejected[name].detail
        assert detail.endswith(f"data.filters.{setting} is {EVERY_FILTER[setting]:g}")
        assert float(detail.split()[0]) == pytest.approx(value, rel=0.07)
        assert (rejected[name].quality is not None) == (name < "clip-05")  # by samples
    assert load_spec(filtered).statistics.clips == CLIPS - len(BROKEN)
    assert problems(filtered, corpus) == []
    told = command("stats", "--cache", filtered).output
    assert all(f"  1 {reason} ({name})\n" in told for name, (reason, _, _) in BROKEN.items())


def test_setting_and_removing_filters_equals_a_fresh_build(copied, unfiltered, filtered):
    corpus, cache = copied
    whole = Path(shutil.copytree(corpus, corpus.parent / "whole"))
    make_undecodable(corpus)
    _, progress = update(corpus, cache, EVERY_FILTER)
    assert "data.filters.min_sample_rate: None -> 20000: the clips are chosen again" in "\n".join(progress.lines)
    assert tree(cache) == tree(filtered)
    report, progress = update(corpus, cache, EVERY_FILTER)
    assert not report.changed
    assert progress.stages == {"scan": CLIPS, "features": 0}
    soundfile.write(corpus / "wavs" / "clip-08.wav", 0.01 * syllables(8), RATE)  # it alone is measured again
    report, _ = update(corpus, cache, EVERY_FILTER)
    assert report.rejected == Counter(reason for reason, _, _ in BROKEN.values()) + Counter(["too quiet"])
    shutil.rmtree(corpus)
    whole.rename(corpus)
    _, progress = update(corpus, cache)
    assert any(f"{len(BROKEN) + 1} of them from audio" in line for line in progress.lines)
    assert tree(cache) == tree(unfiltered)
