"""Sound that only FFmpeg reads."""

import numpy as np
import pytest

from xtts.shared.audio.decode import AudioProblem
from xtts.shared.audio.other_formats import decode_by_ffmpeg

av = pytest.importorskip("av")
pytest.importorskip("faster_whisper")


@pytest.fixture
def m4a(tmp_path):
    """Three seconds of a tone of 440 Hz at 48 kHz, as a phone would store them."""
    return store(tmp_path / "a.m4a", [TONE], "mono")


TONE = 0.5 * np.sin(2 * np.pi * 440 / 48_000 * np.arange(3 * 48_000)).astype(np.float32)


def store(path, channels, layout):
    with av.open(str(path), "w") as container:
        stream = container.add_stream("aac", rate=48_000, layout=layout)
        frame = av.AudioFrame.from_ndarray(np.stack(channels), format="fltp", layout=layout)
        frame.rate = 48_000
        container.mux([*stream.encode(frame), *stream.encode(None)])
    return path


def test_channels_stay_apart_if_asked_for(m4a, tmp_path):
    samples, _ = decode_by_ffmpeg(m4a, "a.m4a", in_stereo=True)
    np.testing.assert_array_equal(samples[:, 0], decode_by_ffmpeg(m4a, "a.m4a")[0])
    call, _ = decode_by_ffmpeg(store(tmp_path / "b.mov", [TONE, 0 * TONE], "stereo"), "b.mov", in_stereo=True)
    assert np.abs(call[24_000:48_000]).max(axis=0) == pytest.approx([0.5, 0.0], abs=0.02)


def test_a_file_and_its_bytes_are_the_same_sound(m4a):
    samples, rate = decode_by_ffmpeg(m4a, "a.m4a")
    assert rate == 48_000
    assert len(samples) == pytest.approx(3 * rate, abs=2048)
    assert np.abs(np.fft.rfft(samples[:rate])).argmax() == 440
    np.testing.assert_array_equal(decode_by_ffmpeg(m4a.read_bytes(), "a.m4a")[0], samples)


def test_a_longer_sound_than_asked_for_is_refused_by_its_header(m4a):
    assert decode_by_ffmpeg(m4a, "a.m4a", most_seconds=4.0)[1] == 48_000
    with pytest.raises(AudioProblem, match="too long audio: 3 s, at most 2 s"):
        decode_by_ffmpeg(m4a, "a.m4a", most_seconds=2.0)


@pytest.mark.parametrize("sound", [b"", b"no sound"])
def test_what_is_no_sound_is_refused(sound):
    with pytest.raises(AudioProblem, match="unreadable audio: no sound that FFmpeg can decode"):
        decode_by_ffmpeg(sound, "a.m4a")
