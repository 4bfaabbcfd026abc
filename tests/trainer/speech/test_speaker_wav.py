"""Speaking with the voice of a recording: `--speaker-wav`, `evaluate` and `export` of a model that imitates."""

import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

from xtts.shared.audio.griffin_lim import reconstruct
from xtts.shared.audio.speaker_encoder import RATE, recorded_voice
from xtts.shared.errors import LockstepError
from xtts.trainer.speech.reference_recordings import read_recordings
from xtts.trainer.synth_cli import main


@pytest.fixture(scope="session")
def source(imitator):
    return imitator[1].source


def test_the_command_takes_several_recordings(imitator, source, recordings, call, tmp_path):
    (run, synthesizer), paths = imitator, [recordings / f"{name}.wav" for name in ("low", "both")]
    sounds = read_recordings(paths, source)
    assert [len(samples) for samples in sounds] == [int(2.5 * RATE), int(7.5 * RATE)]
    synthesizer.set_voice(recorded_voice(sounds))
    expected, _ = synthesizer.speak(source.voice.tokenizer.encode("a word").ids, speaker=0, noise_key=0)
    out = ("-o", tmp_path / "a.wav", "--vocoder", "griffinlim", "--loudness", "recorded")
    given = [part for path in paths for part in ("--speaker-wav", path)]
    command = (main, "--ckpt", run, "--nfe", 2, "--temperature", 0, "--speed", 4, *out, *given, "a word")
    done = call(*command)
    done.succeeded()
    assert "33% of the recording is unlike the voice taken from it" in done.err
    heard, _ = soundfile.read(tmp_path / "a.wav", dtype="float32")
    np.testing.assert_allclose(heard, np.clip(reconstruct(expected, source.voice.mel_profile), -1, 1), atol=1e-3)


def sound(samples):
    return lambda path: soundfile.write(path, np.asarray(samples, np.float32), 22_050, subtype="FLOAT")


def flac_of_hours(path):
    """30 KB, of which a mel would take eight gigabytes."""
    samples = np.pad(3000 * np.sin(np.arange(5000) * 0.7), (0, 2**23 - 5000)).astype(np.int16)
    soundfile.write(path, samples, 1000, format="FLAC")


@pytest.mark.parametrize(("make", "message"), [
    (lambda path: None, r"cannot be read \(No such file or directory\)"),
    (lambda path: path.write_bytes(b""), "empty audio: a file of 0 bytes, expected a recording of one speaker"),
    (lambda path: path.write_text("no samples"), "unreadable audio: .*, expected a recording of one speaker"),
    (sound(0.1 * np.sin(np.arange(43_000) / 20)), r"1\.95 s of sound, expected 2 to 120 s of one speaker"),
    (sound(np.zeros(50_000)), "empty audio: only silence, expected a recording"),
    (sound(3e-4 * np.sin(np.arange(50_000) / 60)), r"silence \(a peak of -70 dB\), expected a voice"),
    (sound(np.full(50_000, np.nan)), "samples that are not finite numbers"),
    (sound(0.1 * np.sin(np.arange(2 * 22_050) / 20)), None),
])
def test_reference_recordings_have_two_seconds_of_a_voice(source, tmp_path, make, message):
    path = tmp_path / "voice.wav"
    make(path)
    if message is None:
        assert [len(samples) for samples in read_recordings([path], source)] == [2 * RATE]
    else:
        with pytest.raises(LockstepError, match=rf"--speaker-wav .*voice\.wav: {message}"):
            read_recordings([path], source)


def test_hours_are_refused_before_they_are_decoded(source, tmp_path, monkeypatch):
    flac_of_hours(path := tmp_path / "voice.flac")
    monkeypatch.setattr("xtts.trainer.speech.reference_recordings.read_recording", pytest.fail)
    with pytest.raises(LockstepError, match="s of sound, expected 2 to 120 s"):
        read_recordings([path], source)


def test_a_phones_recording_is_decoded_by_ffmpeg(source, tmp_path, monkeypatch):
    (path := tmp_path / "me.M4A").write_bytes(b"no sound")
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(
        LockstepError, match=r"--speaker-wav .*me\.M4A: faster-whisper, which decodes it, is not installed"
    ):
        read_recordings([path], source)


@pytest.mark.parametrize(("given", "message"), [
    ([], "--speaker-wav: missing, expected a recording of the voice"),
    (["--speaker-wav", "low.wav", "--speaker", "ann"], "takes its voice from a recording; use --speaker-wav"),
])
def test_the_voice_has_to_be_named_in_the_way_of_the_model(imitator, recordings, call, monkeypatch, given, message):
    monkeypatch.chdir(recordings)
    assert message in call(main, "--ckpt", imitator[0], *given, "a word").refused()
    assert not Path("out.wav").exists()
