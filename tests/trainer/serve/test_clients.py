"""Requests as OpenAI's and Open WebUI's clients and pages of other servers send them."""

import json
from dataclasses import replace

import pytest
from server_process import speak
from tables import cases
from test_serve_speech import FAST, HELLO

from xtts.trainer.serve.speech_requests import read_request

CASES = cases(__file__)

PAGE = {"Origin": "https://chat.example"}


@pytest.mark.parametrize("voice", ["alloy", "../../etc/passwd", "Zo\u00eb\n\ud83d", {"id": "nova"}])
def test_an_unknown_voice_is_replaced_by_the_first_with_a_warning(listening, spoken_by_command, voice):
    answer = speak(listening, FAST | {"input": HELLO, "voice": voice})
    assert answer.content == spoken_by_command(HELLO)
    warning = answer.headers["x-warning"]
    assert warning.startswith("unknown voice '")
    assert warning.endswith("; using default")
    assert warning.isprintable()


def test_fields_of_other_servers_are_ignored_and_named(served_voice, capsys):
    body = b'{"input": "a", "volume_multiplier": 2, "lang_code": "a", "response_format": null, "instructions": "Glad"}'
    for _ in range(2):
        request, warnings = read_request(body, served_voice.capabilities)
        assert (request.input, request.response_format, request.stream_format) == ("a", "mp3", None)
        assert warnings == [
            "volume_multiplier: unknown field; ignored", "lang_code: unknown field; ignored",
            "instructions: not supported; ignored",
        ]
    assert capsys.readouterr().err.count("warning: volume_multiplier: unknown field") == 1, "once in the log"


@pytest.mark.parametrize(("asked", "field", "understood"), CASES["spellings"])
def test_spellings_of_clients_are_understood(served_voice, asked, field, understood):
    capabilities = replace(
        served_voice.capabilities, voices=["anna", "ben"], languages=["en", "de"],
        voice_languages={"anna": "en", "ben": "de"},
    )
    request, warnings = read_request(json.dumps({"input": "a"} | asked).encode(), capabilities)
    assert (getattr(request, field), warnings) == (understood, [])


@pytest.mark.parametrize(("asked", "voice", "language"), CASES["voices"])
def test_voice_and_language_follow_each_other(served_voice, asked, voice, language):
    own = {"anna": "en", "ben": "de"}
    capabilities = replace(served_voice.capabilities, voices=[*own], languages=["en", "de"], voice_languages=own)
    request, _ = read_request(json.dumps({"input": "a", **asked}).encode(), capabilities)
    assert (request.voice, request.language) == (voice, language)
    fixed = replace(capabilities, languages=["de"], voice_languages={"ben": "de"})  # an ONNX graph of one language
    assert read_request(b'{"input": "a"}', fixed)[0].voice == "ben"


def test_what_was_left_out_is_said_and_long_warnings_are_cut(listening):
    answer = speak(listening, FAST | {"input": HELLO + "§\N{PARTY POPPER}" + "".join(map(chr, range(0x4E00, 0x4F00)))})
    warning = answer.headers["x-warning"]
    assert warning.startswith("input: skipped what the voice does not know: § ")
    assert (answer.status_code, len(warning.encode())) == (200, 999)


def test_the_paths_of_clients(server):
    """Open WebUI reads `models` and `voices`, OpenAI's clients `data`."""
    model = server.get("/v1/models/small-voice").json()
    assert (model["id"], model["object"]) == ("small-voice", "model")
    assert server.get("/v1/models").json()["data"] == server.get("/v1/audio/models").json()["models"] == [model]
    refused = server.get("/v1/models/tts-1")
    assert (refused.status_code, refused.json()["error"]["param"]) == (404, "model")
    assert server.get("/health").json()["status"] == "ok"
