from pathlib import Path

import numpy as np
import pytest
import soundfile

from xtts.shared.audio.decode import AudioProblem, decode, read_header


def wav(path: Path, samples: np.ndarray, rate: int, subtype: str = "PCM_16") -> Path:
    soundfile.write(path, samples, rate, subtype=subtype)
    return path


def tone(rate: int, seconds: float, hertz: float = 440.0) -> np.ndarray:
    return 0.5 * np.sin(2 * np.pi * hertz * np.arange(int(rate * seconds)) / rate)


def test_samples_come_back_as_written(tmp_path):
    samples = np.array([0.0, 0.5, -0.5, 0.25], np.float32)
    path = wav(tmp_path / "a.wav", samples, 22_050)
    np.testing.assert_allclose(decode(path.read_bytes(), rate=22_050), samples, atol=1 / 32768)
    assert read_header(path).notes(22_050) == ""


def test_channels_are_averaged(tmp_path):
    path = wav(tmp_path / "a.wav", np.array([[0.5, 0.0], [0.25, -0.25]]), 22_050)
    np.testing.assert_allclose(decode(path.read_bytes(), rate=22_050), [0.25, 0.0], atol=1 / 32768)
    assert read_header(path).notes(22_050) == "mixed down from 2 channels"


@pytest.mark.parametrize("rate", [8_000, 16_000, 24_000, 44_100, 48_000, 192_000])
def test_resampling_keeps_the_tone_and_the_promised_length(tmp_path, rate):
    for extra in range(3):
        samples = tone(rate, 0.5)[: int(rate * 0.5) - extra]
        path = wav(tmp_path / f"{extra}.wav", samples, rate)
        out = decode(path.read_bytes(), rate=22_050)
        assert len(out) == read_header(path).samples_at(22_050)
        middle = slice(2000, len(out) - 2000)
        np.testing.assert_allclose(out[middle], tone(22_050, 0.5)[: len(out)][middle], atol=2e-3)
    assert read_header(path).notes(22_050) == f"resampled from {rate} Hz"


def test_what_cannot_be_used_has_a_reason(tmp_path):
    (tmp_path / "empty").touch()
    with pytest.raises(AudioProblem, match=r"empty audio: a file of 0 bytes"):
        read_header(tmp_path / "empty")
    with pytest.raises(AudioProblem, match="empty audio: no samples"):
        read_header(wav(tmp_path / "a.wav", np.zeros(0), 22_050))
    (tmp_path / "text.wav").write_text("this is not audio")
    with pytest.raises(AudioProblem, match=r"unreadable audio: .*[Ff]ormat"):
        read_header(tmp_path / "text.wav")


def test_enormous_audio_is_refused_by_its_header(tmp_path, monkeypatch):
    path = wav(tmp_path / "a.wav", np.zeros((100, 2)), 22_050)
    monkeypatch.setattr("xtts.shared.audio.decode.LARGEST_DECODED_BYTES", 799)
    with pytest.raises(AudioProblem, match="too long audio: 0 s of 2 channels"):
        decode(path.read_bytes(), rate=22_050)
