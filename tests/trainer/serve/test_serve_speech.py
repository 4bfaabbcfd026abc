"""The server speaks as the command does: the same bytes, in every format, alone and among others."""

import base64
import io
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import soundfile
from server_process import LONG, settings_of, speak

from xtts.trainer.serve import served_voice
from xtts.trainer.serve.served_voice import ServedVoice
from xtts.trainer.speech.encodings import Encoder
from xtts.trainer.speech.voice_source import open_source

HELLO, PIECES = "hello there", LONG[:111]
FAST = {"speed": 4.0, "response_format": "wav"}
"""The model has not learnt durations: at speed 1 it drawls."""


def samples_of(data):
    return soundfile.read(io.BytesIO(data), dtype="int16")[0]


def pcm_of(wav):
    """The same sound as the API's pcm."""
    return Encoder("pcm", 22_050, streams=False).add(soundfile.read(io.BytesIO(wav), dtype="float32")[0], last=True)


def assert_alike(pcm, wanted):
    """They differ by the rounding to 16 bits, which comes before or after the change of the rate."""
    difference = np.frombuffer(pcm, "<i2").astype(int) - np.frombuffer(wanted, "<i2")
    assert np.abs(difference).max() <= 2


def test_requests_at_once_have_the_bytes_of_the_command(server, spoken_by_command):
    """Their turns alternate: what one sets on the shared model must not reach another."""
    asked = [(HELLO, 0), (PIECES, 3), (HELLO, 3), (PIECES, 0)]
    with ThreadPoolExecutor(4) as threads:
        answers = threads.map(lambda one: speak(server, FAST | {"input": one[0], "seed": one[1]}), asked)
    for (text, seed), answer in zip(asked, answers, strict=True):
        assert (answer.status_code, answer.headers["content-type"]) == (200, "audio/wav")
        assert answer.content == spoken_by_command(text, seed=seed)
    assert np.abs(samples_of(answer.content)).max() > 100


def test_everything_is_ready_before_the_first_request(onnx_folder, monkeypatch):
    loaded = []
    monkeypatch.setattr(served_voice, "make_vocoder", lambda *_, **__: lambda mel: loaded.append(mel.shape))
    monkeypatch.setattr(served_voice, "encode_text", lambda words, _, language, __: loaded.append(language))
    monkeypatch.setattr(served_voice, "load_synthesizer", lambda *_: loaded.append("graph"))
    ServedVoice(open_source(onnx_folder), settings_of(), print)
    assert loaded == ["graph", (16, 80), "en"]


@pytest.mark.parametrize("asked", [{"stream_format": "audio"}, {"response_format": "pcm"}])
def test_a_stream_is_the_same_speech_in_parts(server, spoken_by_command, asked):
    """Other formats: test_encodings.py."""
    answer = speak(server, FAST | {"input": PIECES, "seed": 3} | asked)
    assert (answer.status_code, "content-length" in answer.headers) == (200, False)
    wanted = spoken_by_command(PIECES, seed=3)
    if "response_format" in asked:
        assert answer.headers["content-type"] == "audio/pcm;rate=24000;channels=1"
        assert_alike(answer.content, pcm_of(wanted))
    else:
        assert np.array_equal(samples_of(answer.content), samples_of(wanted))


def test_times_of_words_come_with_the_whole_audio_as_json(server):
    asked = FAST | {"input": "hello[pause:0.5s] there", "timestamps": True, "stream_format": "audio"}
    told = speak(server, asked).json()
    assert [word["word"] for word in told["words"]] == ["hello", "there"]
    assert 0.48 < told["words"][1]["start"] - told["words"][0]["end"] < 0.65  # with the end and the start around it
    wav = base64.b64decode(told["audio"])
    assert told["seconds"] == pytest.approx(len(samples_of(wav)) / 22_050, abs=1e-3)
    pcm = base64.b64decode(speak(server, asked | {"response_format": "pcm"}).json()["audio"])
    assert_alike(pcm, pcm_of(wav))
