from math import inf
from pathlib import Path

import numpy as np
import pytest
import soundfile
from fuzzing import fuzzed
from tables import cases

from xtts.shared.audio.decode import AudioProblem, Segment, read_header, read_parts, read_recording

CASES = cases(__file__)


def wav(path: Path, samples: np.ndarray, rate: int, subtype: str = "PCM_16") -> Path:
    soundfile.write(path, samples, rate, subtype=subtype)
    return path


def tone(rate: int, seconds: float, hertz: float = 440.0) -> np.ndarray:
    return 0.5 * np.sin(2 * np.pi * hertz * np.arange(int(rate * seconds)) / rate)


@pytest.mark.parametrize(("written", "read", "notes"), CASES["channels"])
def test_samples_are_read_back_and_channels_averaged(tmp_path, written, read, notes):
    path = wav(tmp_path / "a.wav", np.array(written), 22_050)
    np.testing.assert_allclose(read_recording(path.read_bytes()).at(22_050), read, atol=1 / 32768)
    assert read_header(path).notes(22_050) == notes


def test_one_channel_can_be_taken(tmp_path):
    path = wav(tmp_path / "a.wav", np.array([[0.0, 0.5], [0.0001, 0.25]]), 22_050)
    for segment in (None, Segment(0.0, inf)):
        np.testing.assert_allclose(read_recording(path, segment, 0).mono, [0.0, 0.0001], atol=1 / 32768)
    assert read_header(path).notes(22_050, 0) == "channel 0 of 2"
    with pytest.raises(AudioProblem, match="2 channels, the one to take is 2"):
        _ = read_recording(path, None, 2).mono
    path = wav(path, np.array([0.25, 0.5]), 22_050)
    np.testing.assert_allclose(read_recording(path, None, 2).mono, [0.25, 0.5], atol=1 / 32768)
    assert read_header(path).notes(22_050, 2) == ""


@pytest.mark.parametrize("rate", [16_000, 24_000, 44_100, 48_000])
def test_resampling_keeps_the_tone_and_gives_the_exact_length(tmp_path, rate):
    for extra in range(3):
        samples = tone(rate, 0.5)[: int(rate * 0.5) - extra]
        path = wav(tmp_path / f"{extra}.wav", samples, rate)
        out = read_recording(path.read_bytes()).at(22_050)
        assert len(out) == read_header(path).samples_at(22_050)
        middle = slice(2000, len(out) - 2000)
        np.testing.assert_allclose(out[middle], tone(22_050, 0.5)[: len(out)][middle], atol=2e-3)
    assert read_header(path).notes(22_050) == f"resampled from {rate} Hz"


@pytest.mark.parametrize(("container", "subtype"), CASES["containers"])
def test_a_truncated_file_is_unreadable(tmp_path, container, subtype):
    path = tmp_path / "a"
    noise = 0.1 * np.random.default_rng(0).standard_normal(20 * 24_000)
    soundfile.write(path, noise, 24_000, format=container, subtype=subtype)
    assert len(read_recording(path).at(24_000)) == 20 * 24_000
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])
    with pytest.raises(AudioProblem, match="unreadable audio: "):
        read_recording(path).at(24_000)


def ogg(path, seed):
    soundfile.write(path, 0.1 * np.random.default_rng(seed).standard_normal(22_050), 22_050)
    return path.read_bytes()


def test_an_ogg_file_not_read_to_its_end_is_unreadable(tmp_path):
    first, second = ogg(tmp_path / "a.ogg", 0), ogg(tmp_path / "b.ogg", 1)
    assert len(read_recording(first).at(22_050)) == 22_050
    tag = b"TAG" + b"Title".ljust(125, b"\0")
    for behind in (tag, b"\0" * 5000):
        assert len(read_recording(first + behind).at(22_050)) == 22_050, "taggers leave bytes behind the end"
    for data in (first + second, first[:-500], first[:-500] + tag, first + second + tag):
        with pytest.raises(AudioProblem, match="unreadable audio: cut off, or several streams in one file"):
            read_recording(data).at(22_050)


@pytest.mark.parametrize("size", [0xFFFFFFFF, 0xFFFFFFDB, 0x7FFFFFFF, 0x7FFFF000])
def test_the_placeholder_length_of_a_stream_is_accepted(tmp_path, size):
    data = bytearray(wav(tmp_path / "a.wav", tone(22_050, 1.0), 22_050).read_bytes())
    offset = data.index(b"data") + 4
    data[offset : offset + 4] = size.to_bytes(4, "little")
    data[4:8] = min(size + 36, 0xFFFFFFFF).to_bytes(4, "little")
    assert len(read_recording(bytes(data)).at(22_050)) == 22_050


def test_an_unusable_file_has_a_reason(tmp_path, monkeypatch):
    (tmp_path / "empty").touch()
    (tmp_path / "text.wav").write_text("this is not audio")
    (tmp_path / "lfs.wav").write_text("version https://git-lfs.github.com/spec/v1\n")
    for path, reason in (
        (tmp_path / "empty", "empty audio: a file of 0 bytes"),
        (wav(tmp_path / "none.wav", np.zeros(0), 22_050), "empty audio: no samples"),
        (tmp_path / "text.wav", r"unreadable audio: .*[Ff]ormat"),
        (tmp_path / "lfs.wav", "unreadable audio: a pointer of Git LFS"),
        ((tmp_path / "lfs.wav").read_bytes(), "unreadable audio: a pointer of Git LFS"),
    ):
        with pytest.raises(AudioProblem, match=reason):
            read_header(path)
    path = wav(tmp_path / "long.wav", np.zeros((100, 2)), 22_050)
    monkeypatch.setattr("xtts.shared.audio.decode.LARGEST_DECODED_BYTES", 799)
    with pytest.raises(AudioProblem, match="too long audio: 0 s of 2 channels"):
        read_recording(path.read_bytes()).at(22_050)


@pytest.mark.parametrize("kind", [("wav", "PCM_16"), ("wav", "PCM_24"), ("wav", "FLOAT"), ("flac", "PCM_16")])
@fuzzed(few=30, many=3000)
def test_segments_equal_the_recording(tmp_path, kind, fuzz):
    path, random = tmp_path / f"a.{kind[0]}", np.random.default_rng(fuzz.seed())
    soundfile.write(path, 0.1 * random.standard_normal((50_000, 2)), 22_050, subtype=kind[1])
    samples = read_recording(path).samples
    for _ in range(fuzz.examples):
        first = int(random.integers(0, 40_000))
        count = int(random.integers(1, 10_000))
        segment = read_recording(path, Segment(first / 22_050, count / 22_050))
        np.testing.assert_array_equal(segment.samples, samples[first : first + count])
        assert read_header(path, Segment(first / 22_050, count / 22_050)).samples == count


@pytest.mark.parametrize("suffix", ["mp3", "ogg"])
def test_a_lossy_segment_equals_the_recording(tmp_path, suffix):
    path, random = tmp_path / f"a.{suffix}", np.random.default_rng(0)
    with soundfile.SoundFile(path, "w", 22_050, 1) as file:
        for _ in range(10):
            file.write(tone(22_050, 1.0) + 0.1 * random.standard_normal(22_050))
    samples = read_recording(path).samples
    for start in (8.0, 0.25, 4.0, 2.0, 9.0):
        segment, first = read_recording(path, Segment(start, 0.5)).samples, round(start * 22_050)
        np.testing.assert_allclose(segment, samples[first : first + len(segment)], atol=1e-6)


@pytest.mark.parametrize(("rate", "channels"), [(44_100, 2), (32_000, 1), (22_050, 2), (16_000, 1)])
def test_an_mp3_that_says_no_length_is_whole(tmp_path, rate, channels):
    # Common Voice's have a tag, then frames; the bitrate of these here varies, too.
    path, random = tmp_path / "a.mp3", np.random.default_rng(0)
    loud = np.repeat([0.001, 0.5, 0.01, 0.3], rate)[:, np.newaxis]
    soundfile.write(path, loud * random.uniform(-1.0, 1.0, (4 * rate, channels)), rate)
    said = path.read_bytes()
    frames = said[said.index(said[:2], said.index(b"LAME")) :]
    picture = b"ID3\4\0\0" + bytes([0, 3, 127, 127]) + b"\xff\xfb" * 32_767 + b"\0"
    expected = read_recording(path).samples
    tags = b"ID3\4\0\0\0\0\0\5 text" * 2
    behind = b"LYRICSBEGIN" + b"\xff\xfb\x90\xc4" * 3 + b"TAG" + bytes(125)
    for written in (frames, picture + frames, frames + behind, tags + bytes(300) + frames + bytes(20_000)):
        path.write_bytes(written)
        samples = read_recording(path).samples
        assert 0 <= len(samples) - len(expected) < 3 * 1152, "with the padding of encoder and decoder"
        assert read_header(path).samples == len(samples) == sum(len(part.samples) for part in read_parts(path, 1.0))
        assert np.abs(samples[-rate // 2 : -rate // 4]).max() > 0.1, "the end is there"
    path.write_bytes(picture + said)
    np.testing.assert_array_equal(read_recording(path).samples, expected)
    path.write_bytes(frames[:-20])
    with pytest.raises(AudioProblem, match=r"unreadable audio: \d+ samples decoded, the header says \d+"):
        read_recording(path)


def test_a_flac_from_a_pipe_is_whole(tmp_path):
    path = tmp_path / "a.flac"
    soundfile.write(path, tone(22_050, 2.0), 22_050)
    expected, said = read_recording(path).samples, path.read_bytes()
    piped = said[:21] + bytes([said[21] & 0xF0]) + bytes(4) + said[26:]
    path.write_bytes(piped)
    for source in (piped, path):
        assert read_header(source).samples == 44_100
        np.testing.assert_array_equal(read_recording(source).samples, expected)


def test_a_long_recording_decodes_in_parts_without_a_word(tmp_path, monkeypatch, capfd):
    path, rng = tmp_path / "a.mp3", np.random.default_rng(0)
    with soundfile.SoundFile(path, "w", 22_050, 2) as file:
        for loudness in (1.0, 0.01, 0.3) * 3:
            file.write(loudness * (0.3 * rng.standard_normal((22_050, 2))))
    whole = read_recording(path)
    monkeypatch.setattr("xtts.shared.audio.decode.LARGEST_DECODED_BYTES", 799)
    parts = list(read_parts(path, 2.0))
    assert [len(part.samples) for part in parts] == [44_100] * 4 + [len(whole.samples) - 4 * 44_100]
    np.testing.assert_array_equal(np.concatenate([part.samples for part in parts]), whole.samples)
    assert read_header(path, any_length=True) == whole.header
    assert capfd.readouterr().err == "", "libmpg123 writes there"


def test_the_ends_of_a_segment_are_checked_with_a_tolerance(tmp_path):
    path = wav(tmp_path / "a.wav", tone(22_050, 2.0), 22_050)
    assert read_header(path, Segment(0.0, 1.995)) == read_header(path)  # rounded
    assert read_header(path, Segment(0.0, 2.005)) == read_header(path)
    assert read_header(path, Segment(1.0, 1.005)).samples == 22_050
    assert read_header(path, Segment(0.0, 1.9)).samples == 41_895
    assert read_header(path, Segment(1.0, 1.05)).samples == 22_050, "cut at the end"
    assert read_header(path, Segment(1.5, inf)).samples == 11_025
    for segment in (Segment(1.0, 1.2), Segment(2.5, 1.0), Segment(2.5, inf)):
        with pytest.raises(AudioProblem, match=r"unreadable audio: a segment of .* of 2 s"):
            read_header(path, segment)
    with pytest.raises(AudioProblem, match="empty audio: no samples"):
        read_recording(path, Segment(1.0, 1e-6))


def test_the_digest_of_samples_covers_their_rate(tmp_path):
    paths = [wav(tmp_path / f"{rate}.wav", np.zeros(1000), rate) for rate in (22_050, 24_000)]
    assert len({read_recording(path).sha256 for path in paths}) == 2


def test_a_truncated_recording_fails_only_its_last_segments(tmp_path):
    complete = tmp_path / "complete.flac"
    soundfile.write(complete, 0.1 * np.random.default_rng(0).standard_normal(10 * 22_050), 22_050)
    broken = tmp_path / "broken.flac"
    broken.write_bytes(complete.read_bytes()[: complete.stat().st_size // 2])
    np.testing.assert_array_equal(
        read_recording(broken, Segment(1.0, 1.0)).samples, read_recording(complete, Segment(1.0, 1.0)).samples
    )
    with pytest.raises(AudioProblem, match="unreadable audio"):
        read_recording(broken, Segment(8.0, 1.0))
