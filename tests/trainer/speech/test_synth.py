"""`xtts-synth` speaks; a user's mistakes are reported in one line, before TensorFlow is imported."""

import json
import os
import shutil
import subprocess
import sys
from copy import copy
from pathlib import Path

import numpy as np
import pytest
import soundfile
from click.testing import CliRunner
from tables import cases

from xtts.shared.audio.mel_profiles import mel_profile
from xtts.shared.errors import LockstepError
from xtts.trainer import load_voice
from xtts.trainer.speech import loaded_voice as library
from xtts.trainer.speech.long_form import LoadedVoice, encode_text
from xtts.trainer.speech.voice_source import open_source
from xtts.trainer.stored.checkpoint import FORMAT_VERSION
from xtts.trainer.synth_cli import main
from xtts.trainer.system.tensorflow_import import tensorflow_import

CASES = cases(__file__)

XTTS_SYNTH = Path(sys.executable).with_name("xtts-synth")
HIFIGAN = mel_profile("hifigan")


@pytest.fixture
def trap(tmp_path):
    """The environment of a program that must not import TensorFlow."""
    folder = tmp_path / "trap"
    folder.mkdir()
    (folder / "tensorflow.py").write_text("raise SystemExit('tensorflow was imported')\n")
    return os.environ | {"PYTHONPATH": str(folder), "XDG_CACHE_HOME": str(folder)}


def loudness(mel):
    """A vocoder: mels and lengths matter, not sound."""
    return np.repeat(mel.mean(axis=1), HIFIGAN.hop_samples).astype(np.float32) / 100


@pytest.fixture
def long_form(synthesizer):
    synthesizer = LoadedVoice(copy(synthesizer), loudness, speaker=0, language="en")
    synthesizer.measure()
    return synthesizer


def say(long_form, words):
    return long_form.speak_passages(encode_text(words, long_form.voice, "en", "TEXT")[0])


def test_speech_repeats_and_a_silent_pause_follows_each_sentence(long_form):
    words = "many small words make one long text, " * 3 + "and it ends. Yes\nNo"
    speech = say(long_form, words)
    np.testing.assert_array_equal(say(long_form, words).mel, speech.mel)
    assert len(speech.samples) == len(speech.mel) * HIFIGAN.hop_samples
    silent = np.all(speech.mel == np.float32(HIFIGAN.silence), axis=1)
    assert silent.sum() == 2 * 13
    assert np.isfinite(speech.mel).all()


def test_a_piece_longer_than_every_shape_is_split(long_form, monkeypatch):
    spoken = []

    def speak(ids, *, speaker, language, noise_key):
        assert language == 0
        spoken.append(len(ids))
        return np.zeros((min(4 * len(ids), 50), 80), np.float32), np.full(len(ids), 4)

    monkeypatch.setattr(long_form.synthesizer, "speak", speak)
    say(long_form, "abc def")
    assert spoken == [19, 11, 11]  # with blanks

    monkeypatch.setattr(long_form.synthesizer, "speak", lambda ids, **_: (np.zeros((5, 80)), np.array([99])))
    with pytest.raises(LockstepError, match=r"TEXT: 'a': speaks for 99 frames, expected at most 5"):
        say(long_form, "ab")


def test_the_command_speaks_a_file_of_lines(onnx_folder, call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("lines.txt").write_text("a first line\n***\nThe 3rd; § it\u2028has\n", encoding="utf-8")
    command = ("--ckpt", onnx_folder, "--file", "lines.txt", "-o", "spoken", "--nfe", 2, "--speed", 4)
    code, screen, err = call(main, *command)
    unknown = "warning: lines.txt:3: skipped what the voice does not know: §\n"
    assert (code, err.startswith(unknown), "lines.txt:2: nothing to speak (" in err) == (0, True, True)
    assert sorted(path.name for path in Path("spoken").iterdir()) == ["0001.wav", "0003.wav"]
    lines = screen.splitlines()
    assert len(lines) == 2
    for line, name in zip(lines, ("0001.wav", "0003.wav"), strict=False):
        samples, rate = soundfile.read(Path("spoken") / name)
        assert rate == 22_050
        assert line.startswith(f"spoken/{name}: {len(samples) / rate:.2f} s of audio")
        assert "first sound after" in line
        assert "real-time factor" in line


@pytest.mark.parametrize("text", ["-5 degrees outside.", "- Milk", "-Hello there", "-or so"])
def test_a_text_may_begin_with_a_minus_and_an_option_not_be_misspelt(onnx_folder, call, tmp_path, monkeypatch, text):
    monkeypatch.chdir(tmp_path)
    given = ("--ckpt", onnx_folder, "--nfe", 2, "--speed", 4)
    if text.startswith("-o"):  # the option, with its value in the same word
        assert "-o: r so, expected a file" in call(main, *given, text, "hello").refused()
        return
    call(main, *given, text, "-o", "a.wav").succeeded()
    assert soundfile.info("a.wav").frames
    refused = call(main, *given, "--sped", 2, text).refused()
    assert "No such option" in refused
    assert "--sped" in refused


@pytest.mark.parametrize(("redirected", "said"), [
    ("-o a.wav <&-", "standard input: closed, and no TEXT"), ("hello -o - >&-", "standard output: cannot be written"),
])
def test_closed_standard_streams_are_said_in_one_line(onnx_folder, tmp_path, redirected, said):
    line = f'"$0" --ckpt "$1" {redirected}'
    done = subprocess.run(["sh", "-c", line, XTTS_SYNTH, onnx_folder], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, said in done.stderr, done.stderr.count("\n")) == (2, True, 1)


def test_a_lexicon_is_read_beside_the_words_of_the_voice(onnx_folder, call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("lines.txt").write_text("the kernel\nthe COLONEL\n", encoding="utf-8")
    Path("lexicon.tsv").write_text("colonel\tkernel\n", encoding="utf-8")
    command = ("--ckpt", onnx_folder, "--file", "lines.txt", "-o", "spoken", "--nfe", 2, "--lexicon", "lexicon.tsv")
    assert call(main, *command)[0] == 0
    assert Path("spoken/0001.wav").read_bytes() == Path("spoken/0002.wav").read_bytes()
    voice = open_source(onnx_folder).voice.with_lexicon({"Colonel": "a", "US": "b", "lead": "c"})
    assert voice.with_lexicon({"colonel": "x", "us": "y", "Lead": "z"}).tokenizer.lexicon == {
        "lead": "c", "colonel": "x", "us": "y", "Lead": "z",
    }


def test_standard_output_has_the_sound_alone_and_a_graph_speaks_without_tensorflow(onnx_folder, call, trap, tmp_path):
    options = ("--ckpt", onnx_folder, "hello", "--nfe", 2, "--speed", 4, "-o")
    code = call(main, *options, tmp_path / "a.wav")[0]
    assert code == 0
    command = [XTTS_SYNTH, *map(str, options), "-"]
    result = subprocess.run(command, capture_output=True, check=True, cwd=tmp_path, env=trap)
    assert result.stdout[44:] == (tmp_path / "a.wav").read_bytes()[44:], "its header, sent first, has no length"
    assert result.stderr.decode().startswith("-: 0.")
    assert {path.name for path in tmp_path.iterdir()} == {"a.wav", "trap"}


def test_what_was_said_before_a_stop_is_on_the_disk_whole(onnx_folder, call, tmp_path, monkeypatch):
    """Of each format: the pieces so far; then a full disk, in one line."""
    vocode, said, left = LoadedVoice.vocode, [], []

    def stop_at_the_third(voice, mel):
        if len(said) == 2:
            if (wav := tmp_path / "a.wav").exists():  # as a kill would leave it
                left.append(soundfile.info(wav).frames)
            raise KeyboardInterrupt
        said.append(vocode(voice, mel))
        return said[-1]

    monkeypatch.setattr(LoadedVoice, "vocode", stop_at_the_third)
    command = ("--ckpt", onnx_folder, "--nfe", 2, "--speed", 4, "One. Two. Three. Four.", "-o")
    for suffix in ("wav", "flac", "mp3", "ogg"):
        said.clear()
        assert call(main, *command, tmp_path / f"a.{suffix}")[0] == 130
        written = soundfile.info(tmp_path / f"a.{suffix}")
        assert written.duration == pytest.approx(sum(map(len, said)) / 22_050, abs=0.1)
    assert left[0] == soundfile.info(tmp_path / "a.wav").frames > 0
    monkeypatch.setattr(LoadedVoice, "vocode", vocode)
    (full := tmp_path / "full.wav").symlink_to("/dev/full")
    assert call(main, *command, full).refused() == f"error: {full}: cannot be written (No space left on device)\n"


def test_output_of_importing_tensorflow_is_shown_if_it_fails(capfd):
    def fail():
        os.write(2, b"the reason")
        raise ImportError

    with tensorflow_import():
        os.write(2, b"noise")
    assert capfd.readouterr().err == ""
    with pytest.raises(ImportError), tensorflow_import():
        fail()
    assert capfd.readouterr().err == "the reason"


@pytest.fixture
def refused(tmp_path, onnx_folder, monkeypatch):
    """`refused(*arguments, stdin=..., ckpt=...)`: the one line of stderr; no graph may be loaded before it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(library, "load_synthesizer", lambda *_: pytest.fail("a graph was loaded"))

    def run(*arguments, stdin=b"", ckpt=onnx_folder):
        before = sorted(tmp_path.rglob("*"))
        done = CliRunner().invoke(main, [*map(str, ("--ckpt", ckpt, *arguments))], input=stdin)
        assert done.exit_code == 2, done.output
        assert sorted(tmp_path.rglob("*")) == before, "something was written"
        return done.stderr.strip()

    return run


@pytest.mark.parametrize(("arguments", "code", "reached"), [(["-"], 1, True), (["hello", "-o", "no/a.wav"], 2, False)])
def test_tensorflow_is_imported_after_all_other_checks(finished_run, trap, tmp_path, arguments, code, reached):
    without_a_voice = shutil.copytree(finished_run[0], tmp_path / "run", ignore=lambda *_: ["checkpoint-voice"])
    command = [str(part) for part in (XTTS_SYNTH, *arguments, "--ckpt", without_a_voice)]
    options = {"capture_output": True, "text": True, "check": False, "cwd": tmp_path, "env": trap}
    done = subprocess.run(command, input="hello", **options)
    assert ("tensorflow was imported" in done.stderr) == reached
    assert (done.returncode, "Traceback" in done.stderr) == (code, False)


@pytest.mark.parametrize(("arguments", "message"), CASES["refused"])
def test_what_cannot_be_spoken_is_said_in_one_line(refused, arguments, message):
    said = refused(*arguments)
    assert message in said
    assert len(said.splitlines()) == 1 or "Usage" in said


def test_what_cannot_be_read_or_written_is_refused(refused, tmp_path, monkeypatch):
    assert "standard input: not UTF-8 text" in refused(stdin=b"\xff\xfe\x00")
    assert "no such folder" in refused("hello", ckpt=tmp_path / "nothing")
    (tmp_path / "locked").mkdir()
    monkeypatch.setattr(os, "access", lambda path, _: path != Path("locked"))  # root may write anywhere
    assert "locked cannot be written to" in refused("hello", "-o", "locked/a.wav")


def test_a_run_whose_description_is_damaged(refused, tmp_path, finished_run):
    run = Path(shutil.copytree(finished_run[0], tmp_path / "old"))
    fields = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({k: v for k, v in fields.items() if k != "synthesis"}))
    assert "no `synthesis` entry" in refused("hello", ckpt=run)
    fields["synthesis"]["shapes"][0]["frames"] = -1
    (run / "run.json").write_text(json.dumps(fields))
    assert "run.json synthesis.shapes.0.frames: input should be greater than 0" in refused("hello", ckpt=run)


def test_without_ckpt_the_newest_run_speaks(finished_run, call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, kind, time in (("a-vocoder", "vocoder", 3), ("young", "acoustic", 2), ("old", "acoustic", 1)):
        checkpoint = tmp_path / "runs" / name / "checkpoints" / "step-1"
        checkpoint.mkdir(parents=True)
        (checkpoint / "checkpoint.json").write_text(json.dumps({"format_version": FORMAT_VERSION, "kind": kind}))
        os.utime(checkpoint, (time, time))
    (tmp_path / "runs" / "begun").mkdir()
    for command in ((), ("evaluate",), ("serve",), ("export", "out")):
        _, _, err = call(main, *command, "--nfe", "0")
        assert f"--ckpt {Path('runs', 'young')}: the most recent run" in err, command
        assert "error: " in err
    err = call(main, "hello", "--ckpt", "runs/yuong")[2]
    assert "runs/yuong: no such folder" in err
    assert err.endswith("; choose one of runs/a-vocoder, runs/young, runs/old\n")


def test_a_text_sounds_the_same_without_its_unknown_letters(onnx_folder):
    voice = load_voice(onnx_folder, nfe=2, speed=4.0)
    speech = voice.speak("ab")
    assert speech.samples.dtype == np.float32
    assert speech.mel.shape[1] == 80
    assert np.abs(speech.samples).max() <= 1
    other = load_voice(onnx_folder, nfe=2, speed=4.0, vocoder="griffinlim").speak("ab")
    assert np.abs(other.samples - speech.samples).max() > 0.01
    with pytest.warns(UserWarning, match="skipped what the voice does not know: \u2665"):
        again = voice.speak("ab\u2665")
    assert np.array_equal(again.mel, speech.mel)
    for half in ("\ud83d", "\ude00"):
        with pytest.warns(UserWarning, match=f"does not know: U\\+{ord(half):04X}"):
            assert np.array_equal(voice.speak(f"a{half}b").mel, speech.mel)
    with pytest.raises(LockstepError, match="nothing to speak"):
        voice.speak(" ")
