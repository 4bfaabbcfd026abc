"""`xtts-synth` speaks; what a user can get wrong is said in one line, before TensorFlow is imported."""

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

from xtts.shared.audio.mel_profiles import mel_profile
from xtts.shared.errors import LockstepError
from xtts.trainer.evaluation.synthesis_options import SynthesisOptions
from xtts.trainer.evaluation.voice_description import Shape, Voice
from xtts.trainer.synth.input_texts import Text
from xtts.trainer.synth.sentences import split_text
from xtts.trainer.synth.voice_source import open_source

XTTS_SYNTH = Path(sys.executable).with_name("xtts-synth")
HIFIGAN = mel_profile("hifigan")


def within(letters):
    return lambda text: len(text) <= letters


# Text in pieces


def test_a_text_that_fits_stays_whole():
    assert split_text(" Mr. Fox came. He left. \n", within(40)) == ["Mr. Fox came. He left."]
    assert split_text(" \n", within(40)) == []


def test_long_text_is_cut_at_sentences_and_neighbours_stay_together():
    text = 'One came. "Two came!" Three came? Four came.'
    assert split_text(text, within(22)) == ['One came. "Two came!"', "Three came? Four came."]


def test_a_long_sentence_is_cut_at_clauses_then_words_then_anywhere():
    assert split_text("first this, then that; at last those", within(14)) == [
        "first this,",
        "then that;",
        "at last those",
    ]
    assert split_text("a bc def ghij", within(5)) == ["a bc", "def", "ghij"]
    assert split_text("abcdefgh", within(3)) == ["ab", "cd", "ef", "gh"]


@pytest.mark.parametrize("letters", [1, 3, 10, 25])
def test_every_piece_fits_and_nothing_is_lost(letters):
    text = "It was 3.5 miles, perhaps four -- who knows?! (Nobody.) " * 3 + "Incomprehensibilities\n\nend"
    pieces = split_text(text, within(letters))
    assert all(len(piece) <= letters for piece in pieces)
    assert "".join("".join(pieces).split()) == "".join(text.split())


# Shapes


def test_the_ladder_has_one_shape_per_frame_count():
    shapes = [Shape(tokens=30, frames=200), Shape(tokens=10, frames=100), Shape(tokens=20, frames=200)]
    symbols = {"kind": "characters", "add_blank": False, "symbols": ["<pad>", "a"]}
    voice = Voice.model_validate(
        {"profile": "hifigan", "mel_mean": 0.0, "mel_deviation": 1.0, "tokenizer": symbols, "speakers": [],
         "shapes": [shape.model_dump() for shape in shapes]}
    )  # fmt: skip
    assert [(shape.tokens, shape.frames) for shape in voice.ladder] == [(10, 100), (30, 200)]
    assert voice.most_tokens == 30


# A run that speaks


@pytest.fixture(scope="module")
def narrator(finished_run):
    """The micro model with a vocoder that gives the frames' loudness: mels and lengths matter, not sound."""
    from xtts.trainer.synth.long_texts import Narrator
    from xtts.trainer.synth.tensorflow_speaker import TensorFlowSpeaker

    def loudness(mel):
        return np.repeat(mel.mean(axis=1), HIFIGAN.hop_samples).astype(np.float32) / 100

    return Narrator(
        TensorFlowSpeaker(open_source(finished_run[0]), SynthesisOptions(steps=2)),
        loudness,
        speaker_number=0,
        language="en",
    )


def say(narrator, words):
    return narrator.speak(Text(words=words, out=Path("x.wav"), where="TEXT"))


def test_the_averaged_weights_speak(narrator, finished_run):
    arrays = open_source(finished_run[0]).averages()
    weights = {weight.path: weight.numpy() for weight in narrator.speaker.model.trainable_variables}
    assert set(arrays) == set(weights)
    for path, value in weights.items():
        np.testing.assert_array_equal(value, arrays[path])


def test_speech_repeats_and_a_silent_pause_joins_the_pieces(narrator):
    words = "many small words make one long text, " * 6
    speech = say(narrator, words)
    np.testing.assert_array_equal(say(narrator, words).mel, speech.mel)
    assert speech.pieces > 1
    assert 0 < speech.first_seconds < speech.seconds
    assert len(speech.samples) == len(speech.mel) * HIFIGAN.hop_samples
    silent = np.all(speech.mel == np.float32(HIFIGAN.silence), axis=1)
    assert silent.sum() == 13 * (speech.pieces - 1)
    assert np.isfinite(speech.mel).all()


def test_shapes_are_locked_and_compiled_once(narrator):
    for words in ("a word", "a word or two", "another word"):
        say(narrator, words)
    shapes = narrator.speaker.compiled_shapes
    assert len(shapes) <= len(narrator.speaker.voice.ladder)
    before = narrator.speaker.clock.compile_seconds
    say(narrator, "one more")
    assert narrator.speaker.clock.compile_seconds == before
    for function in narrator.speaker._traced.values():
        for tensor in function.inputs:
            assert tensor.shape.is_fully_defined()


def test_a_piece_longer_than_every_shape_moves_up_or_is_split(narrator, monkeypatch):
    from xtts.trainer.synth.speaker import Utterance

    spoken = []

    def speak(ids, *, speaker, language, number, frames):
        assert (language, frames) == (0, 0)
        spoken.append(len(ids))
        return Utterance(mel=np.zeros((min(10 * len(ids), 50), 80), np.float32), frames=10 * len(ids))

    monkeypatch.setattr(narrator.speaker, "speak", speak)
    speech = say(narrator, "abc def")
    assert speech.pieces == 2
    assert spoken == [7, 3, 3]

    monkeypatch.setattr(narrator.speaker, "speak", lambda ids, **_: Utterance(mel=np.zeros((5, 80)), frames=99))
    with pytest.raises(LockstepError, match=r"TEXT: 'a': speaks for 99 frames, expected at most 5"):
        say(narrator, "ab")


def test_a_language_that_the_model_does_not_speak_is_named(finished_run):
    source = open_source(finished_run[0])
    assert source.language(None) == source.language("en") == "en"
    assert source.conditioning == []
    with pytest.raises(LockstepError, match=r"--language: .* does not speak 'fa', expected en"):
        source.language("fa")


def test_the_command_speaks_a_file_of_lines(finished_run, tmp_path):
    (tmp_path / "lines.txt").write_text("a first line\n\nThe 3rd; § it has\n", encoding="utf-8")
    command = [XTTS_SYNTH, "--ckpt", finished_run[0], "--file", "lines.txt", "-o", "spoken", "--steps", "2"]
    # A program of its own: TensorFlow, which it imports, has to be silent.
    result = subprocess.run([*map(str, command)], cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stderr == "warning: lines.txt:3: left out what the symbol table does not hold: §\n"
    assert sorted(path.name for path in (tmp_path / "spoken").iterdir()) == ["0001.wav", "0003.wav"]
    lines = result.stdout.splitlines()
    assert len(lines) == 3
    for line, name in zip(lines, ("0001.wav", "0003.wav"), strict=False):
        samples, rate = soundfile.read(tmp_path / "spoken" / name)
        assert rate == 22_050
        assert line.startswith(f"spoken/{name}: {len(samples) / rate:.2f} s of audio")
        assert "first sound after" in line
        assert "real-time factor" in line


# What is refused


@pytest.fixture
def refused(tmp_path, finished_run):
    """`refused(*arguments, stdin=..., ckpt=...)`: the one line of stderr, where TensorFlow cannot be imported."""
    (tmp_path / "trap").mkdir()
    (tmp_path / "trap" / "tensorflow.py").write_text("raise SystemExit('tensorflow was imported')\n")

    def run(*arguments, stdin=b"", ckpt=finished_run[0]):
        environment = os.environ | {"PYTHONPATH": str(tmp_path / "trap")}
        command = [str(part) for part in (XTTS_SYNTH, "--ckpt", ckpt, *arguments)]
        before = sorted(tmp_path.rglob("*"))
        result = subprocess.run(command, input=stdin, capture_output=True, check=False, env=environment, cwd=tmp_path)
        message = result.stderr.decode()
        assert "Traceback" not in message
        assert result.returncode == (1 if "tensorflow was imported" in message else 2)
        assert sorted(tmp_path.rglob("*")) == before, "something was written"
        return message.strip()

    return run


def test_a_command_that_may_begin_imports_tensorflow(refused):
    assert refused("hello") == "tensorflow was imported"
    assert refused(stdin=b"hello") == "tensorflow was imported"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["hello", "-o", "a.mp3"], "error: -o: a.mp3, expected a file that ends in .wav"),
        (["hello", "-o", "no/a.wav"], "error: -o: no such folder: no; mkdir -p no"),
        (["hello", "-o", "a.wav", "--mel-out", "a.txt"], "expected a file that ends in .npy"),
        (["hello", "--vocoder", "wavenet"], "expected griffinlim or onnx:FILE"),
        (["hello", "--vocoder", "onnx:no.onnx"], "no such file: no.onnx"),
        (["hello", "--speaker", "LJ"], "'LJ' is not in"),
        (["hello", "--file", "lines.txt", "-o", "x"], "error: --file: a TEXT as well, expected one of them"),
        (["--file", "lines.txt"], "expected -o FOLDER"),
        (["--file", "lines.txt", "-o", "x"], "lines.txt: cannot be read (No such file or directory)"),
        (["--file", "/dev/null", "-o", "x"], "/dev/null: no lines of text"),
        (["--file", "lines.txt", "-o", "no/x"], "no such folder: no"),
        (["日本", "-o", "a.wav"], "TEXT: nothing to speak (only unknown characters: 日 本)"),
        (["  "], "TEXT: nothing to speak (no text)"),
        (["-"], "standard input: nothing to speak (no text)"),
        (["hello", "--speed", "0"], "0.25<=x<=4"),
    ],
)
def test_what_cannot_be_spoken_is_said_in_one_line(refused, arguments, message):
    said = refused(*arguments)
    assert message in said
    assert len(said.splitlines()) == 1 or "Usage" in said


def test_an_output_that_cannot_be_written(refused, tmp_path):
    if os.geteuid() == 0:
        pytest.skip("root writes anywhere")
    (tmp_path / "locked").mkdir()
    (tmp_path / "locked").chmod(stat.S_IRUSR | stat.S_IXUSR)
    assert "locked cannot be written to" in refused("hello", "-o", "locked/a.wav")


def test_bytes_that_are_no_text(refused):
    assert "standard input: not UTF-8 text" in refused(stdin=b"\xff\xfe\x00")


def test_no_checkpoint(refused, tmp_path):
    assert "no such folder" in refused("hello", ckpt=tmp_path / "nothing")


def test_a_run_of_an_earlier_version(refused, tmp_path, finished_run):
    run = Path(shutil.copytree(finished_run[0], tmp_path / "old"))
    fields = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({k: v for k, v in fields.items() if k != "synthesis"}))
    assert "no `synthesis` entry" in refused("hello", ckpt=run)
    fields["synthesis"]["shapes"][0]["frames"] = -1
    (run / "run.json").write_text(json.dumps(fields))
    assert "run.json synthesis.shapes.0.frames: input should be greater than 0" in refused("hello", ckpt=run)
