"""Every figure comes out bad where what it measures is broken, on real recordings."""

from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
import soundfile
from scipy.ndimage import gaussian_filter1d

from xtts.shared.audio.mel import log_mel
from xtts.shared.audio.mel_profiles import mel_profile
from xtts.trainer.evaluation import speech_distances
from xtts.trainer.evaluation.figures import Recordings
from xtts.trainer.evaluation.speech_distances import (
    FrechetDistance,
    cepstra,
    distance_of_halves,
    pause_seconds,
    pitch_errors,
    pitch_track,
    warped_distances,
)

PROFILE = mel_profile("hifigan")
DOCS = Path(__file__).parents[3] / "docs"
NAMES = ("LJ001-0002", "LJ001-0008", "LJ001-0010", "LJ001-0017")


@pytest.fixture(scope="module")
def mels(real_clips):
    """Of the first two seconds of each."""
    samples = [soundfile.read(real_clips / "wavs" / f"{name}.wav", dtype="float32")[0][:44_100] for name in NAMES]
    return [log_mel(clip, PROFILE) for clip in samples]


@pytest.fixture(scope="module")
def recordings(mels):
    return Recordings(mels, NAMES, [0, 2], PROFILE)


def test_a_clip_is_at_no_distance_from_itself_however_slowly_it_is_said():
    mel = np.cumsum(np.random.default_rng(0).standard_normal((40, 80)), axis=0).astype(np.float32)
    for spoken in (mel, np.repeat(mel, 2, axis=0)):
        own, other = warped_distances(cepstra(spoken), [cepstra(mel), cepstra(mel[::-1])])
        assert own == pytest.approx(0.0, abs=0.02)
        assert other > 1


def test_a_recording_is_perfect_speech_and_a_wrong_one_is_none(recordings, mels):
    own, sentences = recordings.compare([mels[0], mels[2]], [len(mels[0]), len(mels[2])])
    assert own.retrieval_at_1 == 1.0
    assert own.relative_mcd < 1e-3
    assert (own.duration_error, own.log_f0_error, own.voicing_error, own.pause_error) == (0, 0, 0, 0)
    assert own.frechet_distance == pytest.approx(0.0, abs=1e-3)
    assert [sentence.clip_id for sentence in sentences] == [NAMES[0], NAMES[2]]
    wrong, sentences = recordings.compare([mels[1], mels[1]], [len(mels[1])] * 2)
    assert wrong.retrieval_at_1 == 0.0
    assert {sentence.nearest for sentence in sentences} == {NAMES[1]}
    assert wrong.relative_mcd >= 1.0
    assert wrong.duration_error == pytest.approx(np.mean([abs(len(mels[1]) / len(mels[i]) - 1) for i in (0, 2)]))
    assert wrong.log_f0_error > 0.1
    assert wrong.voicing_error > 0.2


def test_the_vocoder_costs_little(recordings):
    vocoded, _ = recordings.vocoded()
    assert vocoded.relative_mcd < 0.1
    assert vocoded.log_f0_error < 0.03
    assert vocoded.voicing_error < 0.05


def test_a_vocoded_mel_is_voiced_where_its_recording_is():
    """Ten iterations of Griffin-Lim left 25% of the frames of this one voiced, of 44%: on both sides of a figure."""
    samples = soundfile.read(DOCS / "kerstin-recorded.mp3", dtype="float32")[0]
    mel = log_mel(samples, PROFILE)
    recordings = Recordings([mel, mel], ["one", "two"], [0], PROFILE)
    vocoded, recorded = recordings._pitch(mel) > 0, pitch_track(samples, PROFILE, len(mel)) > 0
    assert np.mean(vocoded != recorded) < 0.12


def test_speech_without_a_voice_has_the_worst_pitch(recordings, mels):
    """As long as its mean left nothing to count it was 0, that of perfect speech."""
    hiss = np.random.default_rng(0).normal(-3, 1, mels[0].shape).astype(np.float32)
    figures, (sentence,) = recordings.compare([hiss], [len(hiss)], [0])
    assert sentence.log_f0_error is None
    assert figures.log_f0_error == pytest.approx(np.log(500 / 60))
    assert figures.voicing_error > 0.2


def noisy(mel, amount):
    return mel + amount * np.random.default_rng(0).normal(size=mel.shape)


DEFECTS = {
    "blur over time": lambda mel, amount: gaussian_filter1d(mel, 2 * amount, axis=0),
    "blur over frequency": lambda mel, amount: gaussian_filter1d(mel, 2 * amount, axis=1),
    "noise": noisy,
}


@pytest.mark.parametrize("break_mel", DEFECTS.values(), ids=DEFECTS)
def test_the_frechet_distance_sees(mels, break_mel):
    distance = FrechetDistance(mels)
    hardly, little, much = (distance([break_mel(mel, amount) for mel in mels]) for amount in (0.05, 0.3, 0.8))
    assert hardly < 0.5 < 1.0 < little < much / 2
    assert distance([mel + 1.0 for mel in mels]) == pytest.approx(0.0, abs=1e-3), "louder is not worse"


def test_the_frechet_distance_of_gaussians_is_the_formula():
    random = np.random.default_rng(3)
    one, two = (random.normal(size=[4000, 8]) * scale for scale in (0.1, 0.2))
    # 5 frames of 8 channels: means alike, each deviation 0.1 against 0.2, 0.1^2 in each of 40 dimensions.
    assert FrechetDistance([one])([two]) == pytest.approx(0.4, rel=0.05)
    tilted = np.linspace(-1, 1, 8)
    assert FrechetDistance([one])([one + tilted]) == pytest.approx(5 * np.square(tilted).sum(), rel=1e-6)
    assert distance_of_halves([one[:2000], one[2000:]]) < 0.01


def test_shifted_pitch_and_swapped_voicing_are_seen():
    track = np.array([0, 100, 110, 120, 0, 0, 90, 95], np.float32)
    path = np.stack([np.arange(8)] * 2, axis=1)
    assert pitch_errors(track, track, path) == (0.0, 0.0)
    higher = pitch_errors(track * 2 ** (2 / 12), track, path)  # by two semitones
    assert higher.log_f0 == pytest.approx(2 / 12 * np.log(2), rel=1e-5)
    assert higher.voicing == 0.0
    whispered = pitch_errors(np.where(np.arange(8) < 4, 0, track), track, path)
    assert whispered.voicing == 3 / 8
    assert pitch_errors(np.zeros(8), track, path) == (None, 5 / 8), "no pair is voiced in both"


def test_removed_pauses_are_missed(mels):
    speech = mels[0][20:80]
    silence = np.full((40, 80), np.log(1e-5), np.float32)
    frame = PROFILE.hop_samples / PROFILE.sample_rate
    spoken = pause_seconds(speech, PROFILE)
    paused = np.concatenate([silence, speech, silence, speech, silence])
    assert pause_seconds(paused, PROFILE) == pytest.approx(2 * spoken + 40 * frame, abs=0.1)
    recordings = Recordings([paused, mels[1]], ["a", "b"], [0], PROFILE)
    figures, _ = recordings.compare([np.concatenate([speech, speech])], [120])
    assert figures.pause_error == pytest.approx(40 * frame, abs=0.1)


def test_librosa_is_imported_under_a_lock(monkeypatch):
    """Two that compile its functions at the same time break numba's files."""
    waited = list[object]()
    monkeypatch.setattr(speech_distances, "in_turn", lambda path: nullcontext(waited.append(path)))
    speech_distances._librosa.cache_clear()
    for _ in range(2):
        assert not pitch_track(np.zeros(9000, np.float32), PROFILE, 35).any()
    assert len(waited) == 1
