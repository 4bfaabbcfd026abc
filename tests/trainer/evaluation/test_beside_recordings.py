"""The figures beside recordings come out bad where what they measure is broken, on real recordings."""

import numpy as np
import pytest
import soundfile
from scipy.signal import butter, sosfiltfilt

from xtts.shared.audio.griffin_lim import reconstruct
from xtts.shared.audio.mel import log_mel
from xtts.shared.audio.mel_profiles import mel_profile
from xtts.trainer.evaluation.beside_recordings import brightness

PROFILE = mel_profile("hifigan")
RATE = PROFILE.sample_rate


@pytest.fixture(scope="module")
def recordings(real_clips):
    """Three of Kathleen's, which reach 11 kHz."""
    paths = sorted((real_clips / "kathleen").glob("*.flac"))[:3]
    return [soundfile.read(path, dtype="float32")[0] for path in paths]


def band(samples, low, high, kind="bandpass"):
    edges = {"bandpass": (low, high), "lowpass": high, "highpass": low}[kind]
    return sosfiltfilt(butter(10, edges, kind, fs=RATE, output="sos"), samples).astype(np.float32)


def noise(samples):
    white = np.random.default_rng(0).normal(0, 0.3 * samples.std(), len(samples))
    return band(white, 8_200, None, "highpass")


def griffin_lim(samples):
    return reconstruct(log_mel(samples, PROFILE), PROFILE)


CHANGES = {
    "itself": (lambda x: x, (0, 0), (0, 0)),
    "quieter": (lambda x: x / 8, (-0.01, 0.01), (-0.01, 0.01)),
    "offset": (lambda x: x + np.float32(0.05), (-0.01, 0.01), (-0.01, 0.01)),
    "silence": (lambda x: np.pad(x, (0, 3 * len(x))), (-0.05, 0.05), (-0.05, 0.05)),
    "noise in pauses": (lambda x: np.append(x, np.resize(noise(x) / 30, 9 * len(x))), (-0.05, 0.05), (-0.05, 0.05)),
    "dull": (lambda x: band(x, None, 7_500, "lowpass"), (-1, 0), (-45, -20)),
    "hiss": (lambda x: x + noise(x), (-0.1, 0.1), (3, 20)),
    "shelf": (lambda x: x + np.float32(10 ** (3 / 20) - 1) * band(x, 4_000, 8_000), (2.4, 3.1), (-0.1, 1)),
    "Griffin-Lim": (griffin_lim, (-1, 1), (-45, -20)),
}


@pytest.mark.parametrize(("change", "middle", "high"), CHANGES.values(), ids=CHANGES)
def test_levels_above_4_khz_beside_recordings(recordings, change, middle, high):
    levels = brightness([change(each) for each in recordings], recordings, RATE, [RATE] * 3)
    assert middle[0] <= levels.level_4_to_8_khz <= middle[1]
    assert high[0] <= levels.level_8_to_11_khz <= high[1]


def test_a_file_without_a_band_says_nothing_about_it(recordings):
    hissing = [recordings[0] + noise(recordings[0]), *recordings[1:]]
    hiss = brightness(hissing[:1], recordings[:1], RATE, [RATE]).level_8_to_11_khz
    assert brightness(hissing, recordings, RATE, [RATE, 16_000, 16_000]).level_8_to_11_khz == pytest.approx(hiss)
    low = brightness(hissing, recordings, RATE, [16_000] * 3)
    assert (low.level_4_to_8_khz, low.level_8_to_11_khz) == (pytest.approx(0, abs=0.1), None)
    assert brightness(hissing, recordings, RATE, [8_000] * 3).level_4_to_8_khz is None


def test_a_recording_that_was_once_at_16_khz_makes_nothing_dull_but_shows_hiss(real_clips):
    samples, rate = soundfile.read(min((real_clips / "kerstin").glob("*.flac")), dtype="float32")
    dull = brightness([band(samples, None, 7_800, "lowpass")], [samples], rate, [rate])
    assert dull.level_8_to_11_khz == pytest.approx(0, abs=0.1)
    assert brightness([samples + noise(samples)], [samples], rate, [rate]).level_8_to_11_khz > 10
