"""Cutting at pauses: which clips the times of speech and words give."""

import numpy as np
import pytest
from fuzzing import fuzzed
from tables import cases

from xtts.precompute.transcribe.cutting import LONGEST, cut

CASES = cases(__file__)


def no_words(interval):
    raise AssertionError(f"asked for the words in {interval}")


def rounded(clips):
    return [(round(start, 6), round(end, 6)) for start, end in clips]


@pytest.mark.parametrize(("speech", "clips", "left_out"), CASES["pauses"])
def test_pauses_end_clips(speech, clips, left_out):
    is_short = all(end - start <= LONGEST - 0.2 for start, end in speech)
    made, left = cut([*map(tuple, speech)], 30.0, no_words if is_short else lambda _: [])
    assert (rounded(made), left) == ([*map(tuple, clips)], pytest.approx(left_out))


def test_words_cut_speech_without_a_pause():
    """At the longest gap between two, or nearest to the middle; the first and last word reach to the ends."""
    words, asked = [(start, start + 1.0) for start in range(2, 15)], []
    speech = [(1.0, 16.0), (18.0, 22.0)]
    clips, left_out = cut(speech, 30.0, lambda interval: asked.append(interval) or words)
    assert (asked, left_out) == ([(1.0, 16.0)], 0.0)
    assert rounded(clips) == [(0.9, 8.0), (8.0, 16.1), (17.9, 22.1)]
    words[4] = (6.0, 6.8)
    assert rounded(cut(speech, 30.0, lambda _: words)[0]) == [(0.9, 6.9), (6.9, 16.1), (17.9, 22.1)]


@fuzzed(few=300, many=10_000)
def test_no_speech_is_lost_or_heard_twice(fuzz):
    random = np.random.default_rng(fuzz.seed())
    for _ in range(fuzz.examples):
        lengths = random.choice([0.1, 0.5, 1.5, 4.0], random.integers(1, 60)) * random.uniform(0.5, 2)
        ends = np.cumsum(lengths + random.choice([0.1, 0.3, 0.6, 1.5], len(lengths)) * random.uniform(0.9, 1.1))
        speech, seconds = list(zip(ends - lengths, ends, strict=True)), ends[-1] + random.uniform(0, 1)
        clips, left_out = cut(speech, seconds, no_words)
        times = [0.0, *(time for clip in clips for time in clip), seconds]
        assert times == sorted(times)
        assert all(2 <= end - start <= 12 + 1e-9 for start, end in clips)
        lost = [part for part in speech if not any(start <= part[0] and part[1] <= end for start, end in clips)]
        assert sum(end - start for start, end in lost) <= left_out + 1e-9 <= seconds
