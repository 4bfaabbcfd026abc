"""Measurements of recordings with a known loudness, noise, clipping and silence."""

import io

import numpy as np
import pytest
import soundfile
import soxr

from xtts.shared.audio.decode import read_recording
from xtts.shared.audio.signal_quality import channel_power, measure_signal, other_channel_share

RATE = 22_050


def tone(seconds, amplitude=0.25, hertz=220.0, rate=RATE):
    return (amplitude * np.sin(2 * np.pi * hertz * np.arange(round(seconds * rate)) / rate)).astype(np.float32)


def speech(seconds=3.0, rate=RATE):
    """Syllables of 0.3 s and pauses of 0.2 s, which begins and ends with a syllable."""
    samples = tone(seconds - 0.2, rate=rate)
    samples[np.arange(len(samples)) / rate % 0.5 >= 0.3] = 0.0
    return samples


def noise(samples, level_db, seed=0):
    random = np.random.default_rng(seed)
    return (samples + 10 ** (level_db / 20) * random.standard_normal(len(samples))).astype(np.float32)


TURNS = np.pad(speech(1.0), (0, RATE))
SWAY = 0.25 * np.sign(np.sin(2 * np.pi * np.arange(len(TURNS)) / RATE * 4))


@pytest.mark.parametrize(("channels", "share"), [
    ([TURNS, np.roll(TURNS, RATE)], 0.5),  # two people, one after the other
    ([TURNS, 0.4 * np.roll(TURNS, RATE)], 0.14), ([TURNS + 0.3 * np.roll(TURNS, RATE), np.roll(TURNS, RATE)], 0.48),
    ([TURNS * (1 + SWAY), TURNS * (1 - SWAY)], 0.0),  # one, who moves
    ([noise(TURNS, -50.0), noise(0.4 * TURNS, -30.0)], 0.0),  # a noisy channel
    ([TURNS, 0.5 * TURNS], 0.0), ([TURNS, noise(0.8 * TURNS, -40.0)], 0.0), ([TURNS, noise(0 * TURNS, -50.0)], 0.0),
    ([TURNS], 0.0), ([0 * TURNS, 0 * TURNS], 0.0),
])
def test_two_people_in_two_channels_are_told_from_one(channels, share):
    assert other_channel_share(channel_power(np.stack(channels, axis=1), RATE)) == pytest.approx(share, abs=0.02)


def test_loudness_is_that_of_the_speech_alone():
    samples = np.pad(tone(1.0, 0.05), RATE // 2)
    assert measure_signal(samples, RATE).loudness_db == pytest.approx(20 * np.log10(0.05 / np.sqrt(2)), abs=0.1)


@pytest.mark.parametrize("level_db", [-70.0, -50.0, -35.0])
def test_added_noise_is_the_noise_floor(level_db):
    quality = measure_signal(noise(speech(), level_db), RATE)
    assert quality.noise_floor_db == pytest.approx(level_db, abs=0.8)
    assert quality.loudness_db == pytest.approx(measure_signal(speech(), RATE).loudness_db, abs=0.2)


@pytest.mark.parametrize("gain", [1.0, 1.5])
def test_clipping_is_the_share_that_was_cut(gain):
    unclipped = tone(2.0, gain, hertz=110.0)
    expected = 1 - 2 / np.pi * np.arcsin(1 / gain) if gain > 1 else 0.0
    for subtype in ("PCM_16", "PCM_24", "FLOAT"):
        file = io.BytesIO()
        soundfile.write(file, np.clip(unclipped, -1, 1), RATE, format="WAV", subtype=subtype)
        quality = read_recording(file.getvalue()).quality
        assert quality.clipped_share == pytest.approx(expected, abs=0.005)
    samples = speech()
    samples[1000:2000:5], samples[1001:2000:5] = 1.0, -1.0
    assert measure_signal(samples, RATE).clipped_share == 0.0, "single peaks are no clipping"


@pytest.mark.parametrize("rate", [8_000, 22_050, 48_000])
@pytest.mark.parametrize(("before", "after"), [(0.0, 0.0), (0.2, 1.3)])
def test_padded_silence_is_the_silence_at_the_ends_at_any_rate(rate, before, after):
    padded = noise(np.pad(speech(rate=rate), (round(before * rate), round(after * rate))), -50.0)
    quality = measure_signal(padded, rate)
    assert (quality.leading_silence, quality.trailing_silence) == pytest.approx((before, after), abs=0.021)
    assert quality.noise_floor_db == pytest.approx(-50.0, abs=1.0)


def test_a_constant_offset_is_neither_noise_nor_loudness():
    samples = noise(np.pad(speech(), 4000), -60.0)
    plain, shifted = measure_signal(samples, RATE), measure_signal(samples + np.float32(0.1), RATE)
    assert shifted.noise_floor_db == pytest.approx(plain.noise_floor_db, abs=0.1)
    assert shifted.loudness_db == pytest.approx(plain.loudness_db, abs=0.1)
    assert shifted.leading_silence == plain.leading_silence > 0.1


def test_the_band_is_where_the_sound_ends_and_not_what_the_header_says(real_clips):
    samples, rate = soundfile.read(real_clips / "kathleen" / "arctic_a0534_1592703145.flac", dtype="float32")
    assert measure_signal(samples, rate).band_hz == pytest.approx(10_800, abs=100), "resampled from 48 kHz"
    for lower in (8_000, 16_000):
        dull = soxr.resample(soxr.resample(samples, rate, lower), lower, rate)
        for stored in (dull, np.round(dull * 32_768) / 32_768):
            assert measure_signal(stored.astype(np.float32), rate).band_hz == pytest.approx(0.48 * lower, rel=0.04)
    assert measure_signal(tone(1.0), RATE).band_hz < 1_000
    assert measure_signal(np.zeros(RATE, np.float32), RATE).band_hz == 0.0


def test_speech_falls_more_slowly_in_a_room_and_not_in_noise(real_clips):
    clips = [soundfile.read(path, dtype="float32") for path in sorted(real_clips.rglob("*.flac"))]
    rate = clips[0][1]
    seconds = np.arange(round(0.36 * rate)) / rate
    echo = np.random.default_rng(0).standard_normal(len(seconds)) * 10 ** (-3 * seconds / 0.3)
    echo *= 0.5 / np.linalg.norm(echo)  # 6 dB below the voice, 0.3 s to fall by 60 dB
    echo[0] = 1.0

    def median(change):
        return np.median([measure_signal(change(samples).astype(np.float32), rate).decay_db for samples, _ in clips])

    dry = median(np.array)
    assert dry > 13.0
    assert median(lambda samples: np.convolve(samples, echo)) < 12.5
    assert median(lambda samples: noise(samples, -55.0)) == pytest.approx(dry, abs=1.5)
    assert measure_signal(tone(1.0), RATE).decay_db < 1.0


def test_a_clip_that_cannot_be_measured_gives_none():
    assert measure_signal(np.zeros(0, np.float32), RATE) is None
    broken = speech()
    for value in (np.nan, np.inf):
        broken[7] = value
        assert measure_signal(broken, RATE) is None
    silent = measure_signal(np.zeros(RATE, np.float32), RATE)
    assert (silent.loudness_db, silent.noise_floor_db, silent.leading_silence) == (-120.0, -120.0, 1.0)
    assert measure_signal(np.ones(5, np.float32), RATE) is not None


def test_measured_values_are_exact_in_float32():
    """The index holds float32: a rerun must find the first build's figures."""
    quality = measure_signal(noise(speech(), -47.3), RATE)
    for value in (quality.loudness_db, quality.noise_floor_db, quality.clipped_share, quality.trailing_silence):
        assert isinstance(value, float)
        assert float(np.float32(value)) == value
