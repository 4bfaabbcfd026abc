"""Clips that stand out, from rows of the index alone."""

from dataclasses import replace

import pytest
from tables import cases

from xtts.precompute.features.quality_stats import quality_stats
from xtts.shared.audio.signal_quality import SignalQuality

CASES = cases(__file__)

USUAL = SignalQuality(
    loudness_db=-20.0, noise_floor_db=-60.0, clipped_share=0.0, leading_silence=0.1, trailing_silence=0.1,
    band_hz=10_900.0, decay_db=18.0,
)


@pytest.fixture
def row(kept_row):
    """Function from id, speaker and what differs to a row of 1 s and 12 letters."""

    def make(name, speaker="", *, text="twelveletter", notes="", seconds=1.0, **different):
        usual = kept_row(name, 12, 86)
        return replace(
            usual, clip=replace(usual.clip, text=text, speaker=speaker),
            notes=notes, seconds=seconds, quality=replace(USUAL, **different),
        )

    return make


@pytest.fixture
def even(row):
    """Nine clips of one speaker with figures that differ a little."""
    return [row(f"even-{n}", loudness_db=-20 + 0.1 * n, noise_floor_db=-60 + 0.5 * n) for n in range(9)]


@pytest.mark.parametrize("different", CASES["better"])
def test_neither_a_uniform_corpus_nor_a_better_clip_has_outliers(even, row, different):
    stats = quality_stats([*even, row("better", **different)], 22_050)
    assert stats.outliers == stats.worst(10) == stats.by_measure() == []
    (line,) = stats.speakers
    assert (line.clips, line.low_rate, line.outliers) == (10, 0, 0)
    assert line.medians["speaking rate"] == 12
    assert line.hours == pytest.approx(10 / 3600)


@pytest.mark.parametrize(("different", "measure"), CASES["broken"])
def test_a_broken_clip_stands_out_by_what_is_broken(even, row, different, measure):
    stats = quality_stats([*even, row("broken", **different)], 22_050)
    assert [(outlier.row.clip.id, outlier.measure.name) for outlier in stats.outliers] == [("broken", measure)]
    assert stats.speakers[0].outliers == 1
    assert [m.name for m, _ in stats.by_measure()] == [measure]
    assert [[outlier.measure.name for outlier in outliers] for outliers in stats.worst(2)] == [[measure]]


def test_speakers_with_few_clips_are_compared_with_all_clips(even, row):
    noisy = [row(f"noisy-{n}", "noisy", noise_floor_db=-30 + 0.5 * n) for n in range(8)]
    assert not quality_stats([*even, *noisy], 22_050).outliers
    stats = quality_stats([*even, *even, noisy[0], noisy[1]], 22_050)
    assert {outlier.row.clip.id for outlier in stats.outliers} == {"noisy-0", "noisy-1"}
    assert [(line.name, line.clips, line.outliers) for line in stats.speakers] == [("", 18, 0), ("noisy", 2, 2)]


def test_kept_clips_with_a_low_sample_rate_are_counted(even, row):
    low = row("low", notes="mixed down from 2 channels; resampled from 16000 Hz")
    high = row("high", notes="resampled from 48000 Hz; trimmed 0.10 s")
    rejected = low.rejected("empty text")
    (line,) = quality_stats([*even, low, high, rejected], 22_050).speakers
    assert (line.clips, line.low_rate) == (11, 1)


@pytest.mark.parametrize(("different", "doubts"), CASES["doubts"])
def test_texts_that_cannot_be_transcripts_are_doubted(row, different, doubts):
    clips = [row(f"clip-{i}", **different) for i in range(12)]
    assert quality_stats(clips, 22_050).doubts[-1:] == doubts
