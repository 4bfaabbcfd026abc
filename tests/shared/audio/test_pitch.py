"""Pitch and roughness of synthetic voices, and of a recorded one after the vocoder."""

from pathlib import Path

import numpy as np
import pytest
import soundfile

from xtts.shared.audio.griffin_lim import reconstruct
from xtts.shared.audio.mel import log_mel
from xtts.shared.audio.mel_profiles import MEL_PROFILES, mel_profile
from xtts.shared.audio.pitch import shimmer, track_pitch

PROFILE = mel_profile("hifigan")
RECORDED = Path(__file__).parents[3] / "docs" / "demo" / "kerstin-recorded.mp3"
FRAMES = 120


def voice(hertz, rate=PROFILE.sample_rate, *, roughness=0.0):
    """Ten harmonics that glide, each period of another level: float32[S]; hertz: [S]."""
    phase = np.cumsum(hertz) / rate
    levels = 1.0 + roughness * np.random.default_rng(0).uniform(-1, 1, int(phase[-1]) + 2)
    harmonics = sum(np.cos(2 * np.pi * k * phase) / k for k in range(1, 11))
    return (0.1 * levels[phase.astype(int)] * harmonics).astype(np.float32)


@pytest.mark.parametrize("profile", MEL_PROFILES.values(), ids=MEL_PROFILES)
@pytest.mark.parametrize(("lowest", "highest"), [(70, 110), (180, 320), (300, 450)])
def test_a_glide_is_followed_and_silence_is_unvoiced(profile, lowest, highest):
    samples = FRAMES * profile.hop_samples
    hertz = np.linspace(lowest, highest, samples)
    glide = np.concatenate([voice(hertz, profile.sample_rate), np.zeros(samples, np.float32)])
    track = track_pitch(glide, profile, 2 * FRAMES)
    assert track.shape == (2 * FRAMES,)
    inside = slice(5, FRAMES - 5)
    middles = hertz[profile.hop_samples // 2 * (not profile.centered) :: profile.hop_samples][:FRAMES]
    np.testing.assert_allclose(track[inside], middles[inside], rtol=0.01)
    assert not track[FRAMES + 5 :].any()


def test_noise_has_no_pitch_and_what_is_no_number_is_silence():
    noise = np.random.default_rng(0).normal(0, 0.1, FRAMES * 256).astype(np.float32)
    assert np.mean(track_pitch(noise, PROFILE, FRAMES) > 0) < 0.1
    assert not track_pitch(np.full(FRAMES * 256, np.nan), PROFILE, FRAMES).any()


def test_a_rough_voice_has_the_same_pitch_and_more_shimmer():
    hertz = np.full(FRAMES * 256, 180.0)
    found = []
    for roughness in (0.0, 0.1, 0.3):
        samples = voice(hertz, roughness=roughness)
        track = track_pitch(samples, PROFILE, FRAMES)
        assert np.mean(np.abs(track - 180) < 5) > 0.9
        found.append(shimmer(samples, track, PROFILE))
    smooth, rough, rougher = found
    assert smooth < 0.02 < 0.04 < rough < rougher / 2
    assert shimmer(np.zeros(2560, np.float32), np.zeros(10, np.float32), PROFILE) is None


def test_the_vocoder_leaves_pitch_voicing_and_roughness():
    """Probabilistic YIN called 27% of such frames voiced after it, where autocorrelation has 51%."""
    samples = soundfile.read(RECORDED, dtype="float32")[0]
    mel = log_mel(samples, PROFILE)
    vocoded = reconstruct(mel, PROFILE)
    tracks = [track_pitch(signal, PROFILE, len(mel)) for signal in (samples, vocoded)]
    assert np.mean((tracks[0] > 0) != (tracks[1] > 0)) < 0.06
    both = (tracks[0] > 0) & (tracks[1] > 0)
    assert np.mean(both) > 0.4
    assert np.median(np.abs(np.log(tracks[0][both] / tracks[1][both]))) < 0.01
    recorded, after = (shimmer(s, track, PROFILE) for s, track in zip((samples, vocoded), tracks, strict=True))
    assert after == pytest.approx(recorded, abs=0.02)
