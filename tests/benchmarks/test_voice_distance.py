"""The distance of benchmarks/unheard_voices.py tells voices apart and can fail."""

import numpy as np
import pytest

from xtts.shared.audio.mel_profiles import mel_profile
from xtts.trainer.evaluation.figures import distance_table

PROFILE = mel_profile("hifigan")
VOWELS = ((700, 1200, 2600), (300, 2200, 3000), (350, 800, 2500), (500, 1800, 2500))
"""Formants, Hz."""


@pytest.fixture
def distance():
    from voice_measures import voice_distance

    return voice_distance


def utterance(random, pitch, tract):
    """Six vowels with a wandering pitch, Hz, and formants moved by `tract`: float32[S], 0.9 s."""
    rate, size = PROFILE.sample_rate, 3300
    contour = pitch * 2 ** np.interp(np.arange(6 * size), np.arange(7) * size, random.normal(0, 0.1, 7))
    phase, samples = 2 * np.pi * np.cumsum(contour) / rate, np.zeros(6 * size)
    for part in range(6):
        inside = slice(part * size, (part + 1) * size)
        formants = tract * np.array(VOWELS[random.integers(len(VOWELS))])
        for harmonic in range(1, 30):
            loud = (1 / (1 + ((harmonic * pitch - formants) / 120) ** 2)).sum()
            samples[inside] += loud * np.sin(harmonic * phase[inside])
    return (0.3 * samples / np.abs(samples).max()).astype(np.float32)


def test_voices_of_another_pitch_or_other_formants_are_told_apart(distance):
    random = np.random.default_rng(4)
    found = {
        f"{pitch} Hz, {tract}": np.stack(
            [distance.describe_samples(utterance(random, pitch, tract), PROFILE) for _ in range(9)]
        )
        for pitch, tract in ((110, 1.0), (170, 1.0), (110, 1.2), (170, 1.2))
    }
    for name, some in found.items():
        assert 2 ** np.median(some[:, 13]) == pytest.approx(float(name[:3]), rel=0.1)
    enrolment, tests = ({name: some[part] for name, some in found.items()} for part in (slice(5), slice(5, 9)))
    space = distance.VoiceSpace.fit(enrolment)
    assert distance.share_right(distance.nearest(space, tests, enrolment)) == 1.0
    chance = [distance.share_right(distance.nearest(space, tests, distance.shuffled(enrolment, s))) for s in range(40)]
    assert 0.1 < np.mean(chance) < 0.4  # of four
    # By the pitch alone two pairs of the four voices are alike.
    alone = [{name: some[:, 13:] for name, some in clips.items()} for clips in (tests, enrolment)]
    assert distance.share_right(distance.nearest(distance.VoiceSpace.fit(alone[1]), *alone)) < 0.9


def test_nearest_counts_which_voice_is_the_nearest(distance):
    space = distance.VoiceSpace(np.eye(1))
    middles = {"a": np.zeros([3, 1]), "b": np.full([3, 1], 10.0)}
    clips = {"a": np.array([[1.0], [9.0]]), "b": np.array([[8.0], [7.0]])}
    table = distance.nearest(space, clips, middles)
    assert table.tolist() == [[1, 1], [0, 2]]
    assert distance.share_right(table) == 0.75
    trained = {"c": np.full([2, 1], 4.0), "d": np.full([2, 1], 8.0)}
    likest = distance.likest(space, middles, trained)
    assert {name: clips.tolist() for name, clips in likest.items()} == {"a": [[4.0], [4.0]], "b": [[8.0], [8.0]]}
    assert distance.groups(["a", "b", "c", "d", "e"], 2) == [["a", "b"], ["c", "d"], ["d", "e"]]


def test_references_are_cut_to_their_length_and_words_are_retrieved():
    from voice_measures.recordings import references
    from voice_measures.spoken_voices import retrieved

    random = np.random.default_rng(0)
    samples = [random.normal(0, 0.1, size).astype(np.float32) for size in (30_000, 50_000, 9_000)]
    pieces = references(samples, 2.0, PROFILE)
    assert [len(piece) for piece in pieces] == [44_100 // 256, 44_100 // 256]
    mels = [random.normal(-5, 2, [frames, 80]).astype(np.float32) for frames in (40, 50, 45)]
    assert distance_table(mels, mels).argmin(axis=1).tolist() == [0, 1, 2]
    assert retrieved([mels[0], mels[2]], mels).tolist() == [True, False]
