"""The server speaks as the command does: the same bytes, in every format, alone and in a crowd."""

import base64
import io
import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import soundfile
from server_process import LONG, running_server

from xtts.trainer.synth.cli import main

HELLO = "hello there"
FAST = {"speed": 4.0}
"""The model has not learnt durations: at speed 1 it drawls."""
TEXTS = {0: (HELLO, LONG[:37]), 3: (HELLO, LONG[:111], LONG)}
"""What the command speaks, by seed."""


@pytest.fixture(scope="session")
def spoken_by_command(command, tmp_path_factory):
    """`spoken_by_command(text, seed, engine)`: `xtts-synth` as wav bytes; one process for all texts of a seed."""
    base, known = tmp_path_factory.mktemp("command"), {}

    def speak(text, seed=0, engine="onnx"):
        if (text, seed, engine) not in known:
            folder = base / f"{engine}-{seed}"
            folder.mkdir()
            (folder / "texts.txt").write_text("\n".join(TEXTS[seed]))
            options = ("--seed", seed, "--speed", 4, "--file", "texts.txt", "-o", "spoken")
            command(folder, *options, engine=engine)
            wavs = [file.read_bytes() for file in sorted((folder / "spoken").glob("*.wav"))]
            known.update({(words, seed, engine): wav for words, wav in zip(TEXTS[seed], wavs, strict=True)})
        return known[text, seed, engine]

    return speak


def samples_of(data, frames=0):
    if data[:4] == b"fLaC" and data[22:26] == bytes(4):  # streamed: the length is not told, and libsndfile needs it
        data = data[:22] + frames.to_bytes(4, "big") + data[26:]
    return soundfile.read(io.BytesIO(data), dtype="int16")[0]


def test_a_wav_has_the_bytes_of_the_command(server, spoken_by_command):
    for text, seed in ((HELLO, 0), (LONG, 3)):
        answer = server.post(FAST | {"input": text, "response_format": "wav", "seed": seed})
        assert (answer.status, answer.headers["content-type"]) == (200, "audio/wav")
        assert answer.body == spoken_by_command(text, seed)
    assert np.abs(samples_of(answer.body)).max() > 100


def thirty_two_at_once(client, spoken_by_command, engine):
    """Their turns alternate: what one sets on the shared model must not reach another."""
    assert client.get("/voices").json["engine"] == engine
    texts = [(HELLO, 0), (HELLO, 3), (LONG[:37], 0), (LONG[:111], 3)] * 8
    asked = [FAST | {"input": t, "response_format": "wav", "seed": s} for t, s in texts]
    with ThreadPoolExecutor(32) as threads:
        answers = list(threads.map(client.post, asked))
    assert [answer.status for answer in answers] == [200] * 32
    assert all(a.body == spoken_by_command(*text, engine) for a, text in zip(answers, texts, strict=True))


def test_thirty_two_at_once_have_the_bytes_of_the_command(start_server, spoken_by_command, compile_cache):
    graphs = sorted((path, path.read_bytes()) for path in compile_cache.rglob("*.graph"))
    with start_server("--timeout", "600") as client:
        thirty_two_at_once(client, spoken_by_command, "onnx")
    assert graphs == sorted((path, path.read_bytes()) for path in compile_cache.rglob("*.graph"))


def test_thirty_two_at_once_have_them_with_tensorflow_too(tensorflow_server, spoken_by_command):
    thirty_two_at_once(tensorflow_server, spoken_by_command, "tensorflow")
    assert spoken_by_command(HELLO) != spoken_by_command(HELLO, engine="tensorflow"), "the noise is another"
    for text in ("9" * 100, "\x00\u202e" + "\u0301" * 1900 + "a"):
        assert tensorflow_server.post(FAST | {"input": text}).status in (200, 400)


def test_nothing_is_compiled_twice(tensorflow_server, start_server, compile_cache):
    """The server has every shape ready or makes it ready once; the next start loads all of it."""
    server = tensorflow_server
    server.post(FAST | {"input": HELLO, "steps": 4})  # waits until the second number of steps is ready
    before = server.metric("xtts_compile_seconds_total")
    for steps in (4, 2):
        assert server.post(FAST | {"input": LONG, "steps": steps}).status == 200
    assert server.metric("xtts_compile_seconds_total") == before > 0
    compiled = sorted(compile_cache.rglob("xla_compile_cache*"))
    with start_server("--engine", "tensorflow") as client:
        assert client.post(FAST | {"input": HELLO, "steps": 4}).status == 200
    assert compiled == sorted(compile_cache.rglob("xla_compile_cache*"))
    assert len(compiled) >= 4


@pytest.mark.parametrize("name", ["flac", "wav", "pcm", "mp3"])
def test_every_format_decodes_to_the_same_speech_whole_or_streamed(server, spoken_by_command, name):
    wanted = samples_of(spoken_by_command(LONG, 3))
    for more in ({}, {"stream_format": "audio"}):
        answer = server.post(FAST | {"input": LONG, "response_format": name, "seed": 3} | more)
        assert answer.status == 200
        streamed = bool(more) or name == "pcm"
        assert (answer.headers.get("transfer-encoding") == "chunked") == streamed
        found = np.frombuffer(answer.body, "<i2") if name == "pcm" else samples_of(answer.body, len(wanted))
        if name == "mp3":
            assert 0 <= len(found) - len(wanted) < 5000
        else:
            assert np.array_equal(found, wanted)


def test_events_carry_the_same_bytes(server, spoken_by_command):
    answer = server.post(FAST | {"input": LONG, "response_format": "pcm", "seed": 3, "stream_format": "sse"})
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = [json.loads(line.removeprefix("data: ")) for line in answer.body.decode().split("\n\n") if line]
    assert len(events) > 2
    assert events[-1] == {"type": "speech.audio.done"}
    data = b"".join(base64.b64decode(event["audio"]) for event in events[:-1])
    assert np.array_equal(np.frombuffer(data, "<i2"), samples_of(spoken_by_command(LONG, 3)))


def test_without_a_format_it_is_mp3_as_clients_expect(server):
    answer = server.post({"input": HELLO, "model": "tts-1"})
    assert answer.headers["content-type"] == "audio/mpeg"
    assert soundfile.info(io.BytesIO(answer.body)).format == "MP3"


def test_speed_steps_solver_and_sway_change_the_speech(server):
    def seconds(**more):
        return len(server.post({"input": HELLO, "response_format": "wav"} | more).body)

    assert seconds(speed=4.0) < seconds()
    assert seconds(seconds=1.5) == 44 + 2 * 256 * round(1.5 * 22_050 / 256)
    changes = ({}, {"steps": 4}, {"solver": "heun"}, {"steps": 4, "sway": -1.0})
    spoken = [server.post({"input": HELLO, "response_format": "wav"} | change).body for change in changes]
    assert len(set(spoken)) == len(changes)


def test_the_mel_belongs_to_the_answer(server, hello_by_command):
    answer = server.post({"input": HELLO, "response_format": "wav"})
    mel = server.get(f"/v1/audio/mel/{answer.headers['x-request-id']}")
    frames, channels = map(int, mel.headers["x-mel-shape"].split(","))
    found = np.frombuffer(mel.body, "<f4").reshape(frames, channels)
    assert np.array_equal(found, np.load(hello_by_command / "mel.npy"))
    assert server.get("/v1/audio/mel/0000").status == 404


def test_what_was_left_out_is_said(server):
    answer = server.post({"input": "hello § there", "response_format": "wav"})
    assert answer.headers["x-warning"] == "input: left out what the symbol table does not hold: %C2%A7"


def test_the_official_client_speaks(server, tmp_path, spoken_by_command):
    openai = pytest.importorskip("openai")
    client = openai.OpenAI(base_url=f"http://127.0.0.1:{server.port}/v1", api_key="none", max_retries=0)
    assert [model.id for model in client.models.list()] == ["whole"]
    speak = client.audio.speech.create(model="whole", voice="default", input=HELLO, response_format="wav", speed=4.0)
    assert speak.content == spoken_by_command(HELLO)
    asked = {"model": "whole", "voice": "default", "input": LONG, "response_format": "pcm", "speed": 4.0}
    with client.audio.speech.with_streaming_response.create(**asked, extra_body={"seed": 3}) as answer:
        answer.stream_to_file(tmp_path / "a.pcm")
    assert np.array_equal(np.fromfile(tmp_path / "a.pcm", "<i2"), samples_of(spoken_by_command(LONG, 3)))
    with pytest.raises(openai.BadRequestError, match="voice: 'alloy' is not one of default") as refused:
        client.audio.speech.create(model="whole", voice="alloy", input=HELLO)
    assert refused.value.param == "voice"


@pytest.mark.parametrize("kind", ["safetensors", "onnx"])
def test_an_exported_folder_is_served_too(call, finished_run, compile_cache, spoken_by_command, tmp_path, kind):
    folder = tmp_path / "small-voice"
    code, _, err = call(main, "export", "--ckpt", finished_run[0], folder, "--format", kind)
    assert code == 0, err
    with running_server(folder, XDG_CACHE_HOME=str(compile_cache)) as client:
        assert client.get("/v1/models").json["data"][0]["id"] == "small-voice"
        answer = client.post(FAST | {"input": HELLO, "response_format": "wav", "seed": 0})
        assert answer.body == spoken_by_command(HELLO)
