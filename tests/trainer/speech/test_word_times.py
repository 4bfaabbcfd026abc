"""Times of words: in the tokens, in the samples of both runtimes, in files."""

import json
from pathlib import Path

import numpy as np
import pytest
from tables import cases

from xtts.shared.audio.mel_profiles import mel_profile
from xtts.trainer import load_voice
from xtts.trainer.speech.word_times import Token, time_words
from xtts.trainer.synth_cli import main

CASES = cases(__file__)

HIFIGAN = mel_profile("hifigan")
HOP_SECONDS = HIFIGAN.hop_samples / HIFIGAN.sample_rate


def timed(text, heard, alone):
    """The words of a line whose symbols each last a second; alone: the sound of a word that is spoken alone."""
    tokens = [Token(symbol, number, number + 1) for number, symbol in enumerate(heard)]
    words = time_words([(word, word) for word in text.split()], tokens, lambda word: alone.get(word, word.lower()))
    return [[word.word, word.start, word.end] for word in words]


@pytest.mark.parametrize(("text", "heard", "alone", "expected"), CASES["words"])
def test_written_words_are_found_among_the_tokens(text, heard, alone, expected):
    assert timed(text, heard, alone) == expected


@pytest.fixture
def voice(onnx_folder):
    return load_voice(onnx_folder, nfe=2, speed=2.0)


TEXT = "[pause:0.3s] one, two three [pause:0.5s] <s>four.</s> five six seven eight nine ten, " * 2


def test_times_are_those_of_the_samples(voice):
    """The tokens of all pieces and the pauses between them fill the audio, and a word's are inside its times."""
    speech, said = voice.speak(TEXT), ["one,", "two", "three", "four.", "five", "six", "seven", "eight", "nine", "ten,"]
    assert [word.word for word in speech.words] == said * 2
    silent = (speech.mel == np.float32(HIFIGAN.silence)).all(axis=1)
    spoken = sum(token.end - token.start for token in speech.tokens)
    assert spoken == pytest.approx((~silent).sum() * HOP_SECONDS)
    for word in speech.words:
        inside = [each for each in speech.tokens if word.start < each.start + 1e-3 and each.end < word.end + 1e-3]
        assert "".join(each.symbol for each in inside).strip() == word.word.strip(".,")
        frames = slice(round(word.start / HOP_SECONDS), round(word.end / HOP_SECONDS))
        assert not silent[frames].any(), f"{word} has a pause inside"


def test_the_command_writes_times(onnx_folder, call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command = ("--ckpt", onnx_folder, "--nfe", 2, "--speed", 4)
    call(main, *command, "--timestamps", "a.json", "one two. Three\nfour").succeeded()
    told = json.loads(Path("a.json").read_text())
    assert [word["word"] for word in told["words"]] == ["one", "two.", "Three", "four"]
    assert 0 <= told["words"][0]["start"] < told["words"][-1]["end"] <= told["seconds"]


@pytest.mark.parametrize(("options", "said"), CASES["refused"])
def test_what_is_refused(onnx_folder, call, tmp_path, monkeypatch, options, said):
    monkeypatch.chdir(tmp_path)
    assert said in call(main, "--ckpt", onnx_folder, *options).refused()
