"""Speaking with the voice of a recording: `--speaker-wav`, `evaluate` and `export` of a model that imitates."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
import tensorflow as tf

from xtts.shared.audio.speaker_encoder import EMBEDDING, RATE, recorded_voice
from xtts.shared.cache.bucket_shapes import BucketShape
from xtts.shared.errors import LockstepError
from xtts.trainer.export.saved_model import MODEL_FOLDER, save_model
from xtts.trainer.speech.synthesis_options import SynthesisOptions
from xtts.trainer.speech.voice_source import read_recordings
from xtts.trainer.synth_cli import main

OPTIONS = SynthesisOptions(nfe=2, temperature=0.0, speed=4.0)


@pytest.fixture(scope="session")
def source(imitator):
    return imitator[1].source


def test_the_command_takes_several_recordings(imitator, source, recordings, call, tmp_path):
    (run, synthesizer), paths = imitator, [recordings / f"{name}.wav" for name in ("low", "both")]
    sounds = read_recordings(paths, source)
    assert [len(samples) for samples in sounds] == [int(2.5 * RATE), int(7.5 * RATE)]
    synthesizer.set_voice(recorded_voice(sounds))
    expected, _ = synthesizer.speak(source.voice.tokenizer.encode("a word").ids, speaker=0, noise_key=0)
    out = ("-o", tmp_path / "a.wav", "--mel-out", tmp_path / "a.npy")
    given = [part for path in paths for part in ("--speaker-wav", path)]
    command = (main, "--ckpt", run, "--nfe", 2, "--temperature", 0, "--speed", 4, *out, *given, "a word")
    done = call(*command)
    done.succeeded()
    assert "33% of the recording is unlike the voice taken from it" in done.err
    np.testing.assert_allclose(np.load(tmp_path / "a.npy"), expected, atol=1e-4)


def test_stock_tensorflow_speaks_for_the_given_time_in_every_shape(imitator, source, tmp_path):
    largest, synthesizer = source.voice.shapes[-1], imitator[1]
    shapes = [BucketShape(tokens=4, frames=24), largest]
    of_two_shapes = replace(source, voice=source.voice.model_copy(update={"shapes": shapes}))
    save_model(of_two_shapes, tmp_path, options=OPTIONS)
    signatures = tf.saved_model.load(str(tmp_path / MODEL_FOLDER)).signatures
    assert set(signatures) == {"serving_default", "speak_4_24", f"speak_{largest.tokens}_{largest.frames}"}
    voice = np.random.default_rng(1).normal(size=[1, EMBEDDING]).astype(np.float32)
    synthesizer.set_voice(voice[0])

    def speak(name, tokens, frames):
        return signatures[name](
            tokens=tf.constant([[3, 4, 5] + [0] * (tokens - 3)]), token_length=tf.constant([3]),
            temperature=tf.constant(0.0), speed=tf.constant(1.0), seed=tf.constant([0, 1]), voice=tf.constant(voice),
            wanted_frames=tf.constant([frames]),
        )  # fmt: skip

    synthesizer.options = OPTIONS.replaced(speed=1.0)
    expected, durations = synthesizer.speak([3, 4, 5], speaker=0, noise_key=1)
    synthesizer.options = OPTIONS
    spoken = speak("serving_default", largest.tokens, 0)
    frames = durations.sum()
    assert spoken["mel_length"][0] == frames
    np.testing.assert_allclose(spoken["mel"][0, :frames], expected, atol=1e-3)
    assert int(speak("speak_4_24", 4, 17)["mel_length"][0]) == 17 != frames


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
    (flac_of_hours, r"8,388\.61 s of sound, expected 2 to 120 s of one speaker"),
    (sound(np.zeros(50_000)), "empty audio: only silence, expected a recording"),
    (sound(3e-4 * np.sin(np.arange(50_000) / 60)), r"silence \(a peak of -70 dB\), expected a voice"),
    (sound(np.full(50_000, np.nan)), "samples that are not finite numbers"),
    (sound(0.1 * np.sin(np.arange(2 * 22_050) / 20)), None),
])  # fmt: skip
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
    monkeypatch.setattr("xtts.trainer.speech.voice_source.decode", pytest.fail)
    with pytest.raises(LockstepError, match="s of sound, expected 2 to 120 s"):
        read_recordings([path], source)


def test_a_phones_recording_is_decoded_by_ffmpeg(source, tmp_path, monkeypatch):
    (path := tmp_path / "me.M4A").write_bytes(b"no sound")
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(
        LockstepError, match=r"--speaker-wav .*me\.M4A: faster-whisper, which decodes it, is not installed"
    ):
        read_recordings([path], source)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "--speaker-wav: missing, expected a recording of the voice"),
        (["--speaker-wav", "low.wav", "--speaker", "ann"], "takes its voice from a recording; use --speaker-wav"),
    ],
)
def test_the_voice_has_to_be_named_in_the_way_of_the_model(imitator, recordings, call, monkeypatch, given, message):
    monkeypatch.chdir(recordings)
    assert message in call(main, "--ckpt", imitator[0], *given, "a word").refused()
    assert not Path("out.wav").exists()
