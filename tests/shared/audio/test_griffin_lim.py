"""Griffin-Lim: exact lengths, and a log-mel close to the given one."""

import numpy as np
import pytest
import soundfile

from xtts.shared.audio.griffin_lim import reconstruct, shortest_samples
from xtts.shared.audio.mel import log_mel
from xtts.shared.audio.mel_profiles import MEL_PROFILES, mel_profile

profiles = pytest.mark.parametrize("profile", MEL_PROFILES.values(), ids=MEL_PROFILES)


def glide(profile, frames):
    """Harmonics of a gliding pitch, as long as `frames` need."""
    time = np.arange(shortest_samples(frames, profile)) / profile.sample_rate
    phase = 2 * np.pi * np.cumsum(120 + 60 * time) / profile.sample_rate
    return sum(0.1 * np.sin(n * phase) for n in range(1, 8)).astype(np.float32)


@profiles
@pytest.mark.parametrize(("frames", "apart"), [(5, 0.5), (60, 0.3)])
def test_the_samples_have_the_mel_and_its_frames(profile, frames, apart):
    mel = log_mel(glide(profile, frames), profile)
    samples = reconstruct(mel, profile)
    assert samples.dtype == np.float32
    assert len(samples) == shortest_samples(frames, profile)
    assert profile.frames(len(samples)) == frames
    assert np.abs(samples).max() <= 1.0
    again = log_mel(samples, profile)
    # Pure tones are the hard case: what lies between them fills up. Speech is nearer, see below.
    assert np.abs(again - mel)[mel > mel.max() - 4].mean() < apart


def test_a_real_clip_keeps_its_mel(real_clips):
    samples, _ = soundfile.read(real_clips / "kathleen" / "arctic_a0534_1592703145.flac", dtype="float32")
    profile = mel_profile("hifigan")
    mel = log_mel(samples, profile)
    again = log_mel(reconstruct(mel, profile), profile)
    assert np.abs(again - mel).mean() < 0.05, "0.16 with a magnitude that does not move"
