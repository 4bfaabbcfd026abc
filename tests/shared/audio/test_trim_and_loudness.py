import numpy as np
import pytest
import soundfile
import soxr
from cache_files import build_cache, index_path

from xtts.precompute.check.verify import check_cache
from xtts.shared.audio.decode import AudioProblem
from xtts.shared.audio.trim_and_loudness import amplify, condition, integrated_loudness, set_loudness, trim_silence
from xtts.shared.cache.clip_index import read_index
from xtts.shared.config_files import load_config

RATE = 22_050


def tone(seconds: float, amplitude: float = 0.5, hertz: float = 997.0, rate: int = RATE) -> np.ndarray:
    return (amplitude * np.sin(2 * np.pi * hertz * np.arange(int(seconds * rate)) / rate)).astype(np.float32)


def silence(seconds: float) -> np.ndarray:
    return np.zeros(int(seconds * RATE), np.float32)


def test_quiet_ends_are_trimmed_but_not_the_middle():
    middle = np.concatenate([tone(0.3), silence(0.5), tone(0.3)])
    quiet = tone(0.4, 0.5e-3)
    trimmed = trim_silence(np.concatenate([quiet, middle, silence(0.7)]), RATE, 40.0)
    assert len(trimmed) == pytest.approx(len(middle) + 2 * 0.05 * RATE, abs=0.011 * 2 * RATE)
    assert len(trim_silence(np.concatenate([quiet, middle]), RATE, 70.0)) >= len(quiet) + len(middle)


@pytest.mark.parametrize("rate", [22_050, 24_000, 48_000])
def test_the_reference_tone_has_the_loudness_of_the_standard(rate):
    # BS.1770: a full-scale 997 Hz sine in one channel reads -3.01 LUFS (the standard's filter is exact at 48 kHz only)
    assert integrated_loudness(tone(3, 1.0, rate=rate), rate) == pytest.approx(-3.01, abs=0.04)
    assert integrated_loudness(tone(3, 0.1, rate=rate), rate) == pytest.approx(-23.01, abs=0.04)


def test_loudness_is_set_unless_the_peak_would_clip():
    assert integrated_loudness(set_loudness(tone(1), RATE, -23.0), RATE) == pytest.approx(-23.0, abs=0.01)
    click = np.concatenate([tone(1, 0.01), [0.9], tone(1, 0.01)]).astype(np.float32)
    assert np.abs(set_loudness(click, RATE, -10.0)).max() == pytest.approx(1.0)
    np.testing.assert_array_equal(set_loudness(silence(1), RATE, -23.0), silence(1))
    assert integrated_loudness(tone(0.1), RATE) == pytest.approx(integrated_loudness(tone(3), RATE), abs=0.5)


def test_pauses_and_noise_are_gated():
    spoken = np.concatenate([tone(2), silence(1), tone(2), tone(9, 0.5e-2)])  # quiet for most of the time
    assert integrated_loudness(spoken, RATE) == pytest.approx(integrated_loudness(tone(4), RATE), abs=0.6)
    assert integrated_loudness(silence(2), RATE) == integrated_loudness(tone(2, 1e-5), RATE) == -np.inf
    low = integrated_loudness(tone(4, hertz=30.0), RATE)
    assert low < integrated_loudness(tone(4), RATE) - 6 < integrated_loudness(tone(4, hertz=4000.0), RATE) - 9


def test_gain_is_constant_but_for_true_peaks():
    quiet = tone(1, 0.2)
    np.testing.assert_array_equal(amplify(quiet, RATE, 3.0), quiet * np.float32(3))
    between = tone(1, 0.5, hertz=RATE / 4 - 1)  # its samples are at times all beside the peaks
    mixed = np.concatenate([quiet, between, quiet])
    louder = amplify(mixed, RATE, 3.0)
    assert np.abs(soxr.resample(louder, RATE, 8 * RATE)).max() < 0.93
    away = round(0.03 * RATE)
    for part in (slice(None, RATE - away), slice(2 * RATE + away, None)):
        np.testing.assert_array_equal(louder[part], mixed[part] * np.float32(3))
    assert len(amplify(mixed[:0], RATE, 3.0)) == 0
    assert amplify(np.ones(1, np.float32), RATE, 3.0) < 1


@pytest.mark.parametrize(("samples", "problem"), [
    (silence(1), "empty audio: only silence"),
    (silence(1) + 0.25, "empty audio: only silence"),
    (0.3 + np.tile([0.0, 1 / 32_768], RATE), "empty audio: only silence"),  # an offset with dither
    (32_768 * tone(1), "unreadable audio: samples up to 16384, expected floats from -1 to 1"),
])
@pytest.mark.parametrize("trim", [None, 40.0])
def test_silence_and_unscaled_floats_are_refused(samples, problem, trim):
    for sound in (tone(1, 1e-3), tone(1, 2.0)):
        condition(sound, rate=RATE, trim_silence_db=trim, loudness_lufs=None)
    with pytest.raises(AudioProblem, match=problem):
        condition(samples.astype(np.float32), rate=RATE, trim_silence_db=trim, loudness_lufs=-20.0)


def test_a_cache_of_trimmed_and_scaled_clips_is_sound(tmp_path):
    (tmp_path / "wavs").mkdir()
    speech = [0.03 * (i + 1) * np.random.default_rng(i).standard_normal(RATE // 2) for i in range(6)]
    for name, samples in {**dict(zip("abcdef", speech, strict=True)), "mute": silence(0.5)}.items():
        soundfile.write(tmp_path / f"wavs/{name}.wav", np.concatenate([silence(0.4), samples, silence(0.3)]), RATE)
    (tmp_path / "metadata.csv").write_text("".join(f"{name}|some words\n" for name in [*"abcdef", "mute"]))
    flags = {"audio.trim_silence_db": 40.0, "audio.loudness_lufs": -20.0, "shapes.max_reject_fraction": 0.2}
    build_cache(tmp_path, tmp_path / "cache", load_config("tiny", flags=flags))
    rows = {row.clip.id: row for row in read_index(index_path(tmp_path / "cache"))}
    assert (rows["mute"].reason, rows["mute"].detail) == ("empty audio", "only silence")
    kept = [row for row in rows.values() if row.is_kept]
    assert {row.notes for row in kept} <= {f"trimmed 0.{cut} s" for cut in range(58, 63)}
    levels = [row.mel_sum / row.mel_length / 80 for row in kept]
    assert max(levels) - min(levels) < 0.1  # six-fold louder is 1.8
    assert check_cache(tmp_path / "cache", threads=1) == []
