"""Requests as OpenAI's and Open WebUI's clients and pages of other servers send them."""

import json
from dataclasses import replace

import pytest
from server_process import client_here, speak
from test_serve_speech import FAST, HELLO

from xtts.trainer.serve.speech_requests import read_request

PAGE = {"Origin": "https://chat.example"}


@pytest.mark.parametrize("voice", ["alloy", "../../etc/passwd", "Zo\u00eb\n", {"id": "nova"}])
def test_a_voice_that_is_not_here_is_the_first_and_that_is_said(listening, spoken_by_command, voice):
    answer = speak(listening, FAST | {"input": HELLO, "voice": voice})
    assert answer.content == spoken_by_command(HELLO)[0]
    said = answer.headers["x-warning"]
    assert said.startswith("voice: '")
    assert said.endswith(" is not here, default speaks")
    assert said.isprintable()


def test_a_voice_is_a_name_an_object_or_an_alias(served_voice):
    capabilities = replace(served_voice.capabilities, voices=["anna", "ben"], aliases={"nova": "ben"})
    for asked, voice in (('"ben"', "ben"), ('{"id": "ben"}', "ben"), ('"nova"', "ben"), ("null", "anna")):
        request, warnings = read_request(f'{{"input": "a", "voice": {asked}}}'.encode(), capabilities)
        assert (request.voice, warnings) == (voice, []), asked


def test_fields_of_other_servers_are_ignored_and_named(served_voice):
    body = b'{"input": "a", "stream": true, "lang_code": "a", "model": null, "response_format": null}'
    request, warnings = read_request(body, served_voice.capabilities)
    assert (request.input, request.response_format) == ("a", "mp3")
    assert warnings == ["stream: ignored, unknown field", "lang_code: ignored, unknown field"]


@pytest.mark.parametrize("language", ["de", "de-DE", "de_AT"])
def test_a_language_may_name_its_country(served_voice, language):
    capabilities = replace(served_voice.capabilities, languages=["en", "de"])
    assert read_request(json.dumps({"input": "a", "language": language}).encode(), capabilities)[0].language == "de"


@pytest.mark.parametrize(
    ("asked", "voice", "language"),
    [
        ({}, "anna", "en"), ({"voice": "ben"}, "ben", "de"), ({"language": "de"}, "ben", "de"),
        ({"voice": "alloy", "language": "de"}, "ben", "de"), ({"voice": "anna", "language": "de"}, "anna", "de"),
    ],
)  # fmt: skip
def test_voice_and_language_follow_each_other(served_voice, asked, voice, language):
    own = {"anna": "en", "ben": "de"}
    capabilities = replace(served_voice.capabilities, voices=[*own], languages=["en", "de"], voice_languages=own)
    request, _ = read_request(json.dumps({"input": "a", **asked}).encode(), capabilities)
    assert (request.voice, request.language) == (voice, language)
    fixed = replace(capabilities, languages=["de"], voice_languages={"ben": "de"})  # an ONNX graph of one language
    assert read_request(b'{"input": "a"}', fixed)[0].voice == "ben"


def test_instructions_are_ignored_and_that_is_said(server, spoken_by_command):
    answer = speak(server, FAST | {"input": HELLO, "voice": {"id": "default"}, "instructions": "Sound glad."})
    assert answer.content == spoken_by_command(HELLO)[0]
    assert answer.headers["x-warning"] == "instructions: ignored, the voice cannot be told how to speak"
    assert "x-warning" not in speak(server, FAST | {"input": HELLO, "instructions": ""}).headers


def test_long_warnings_are_cut(listening):
    answer = speak(listening, FAST | {"input": HELLO + "".join(map(chr, range(0x4E00, 0x4F00)))})
    assert (answer.status_code, len(answer.headers["x-warning"].encode())) == (200, 997)


def test_the_paths_of_clients(server):
    """Open WebUI reads `models` and `voices`, OpenAI's clients `data`."""
    model = server.get("/v1/models/small-voice").json()
    assert (model["id"], model["object"]) == ("small-voice", "model")
    assert server.get("/v1/models").json()["data"] == server.get("/v1/audio/models").json()["models"] == [model]
    refused = server.get("/v1/models/tts-1")
    assert (refused.status_code, refused.json()["error"]["param"]) == (404, "model")
    assert server.get("/health").json()["status"] == "ok"


@pytest.mark.parametrize("origins", [("https://chat.example",), ("*",), ("https://other.example",)])
def test_allowed_origins_may_ask_with_a_token_after_a_preflight(served_voice, origins):
    preflight = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
    token, allowed = "0123456789abcdef", "other" not in origins[0]
    with client_here(served_voice, origins=origins, token=token) as client:
        asked = client.options("/v1/audio/speech", headers=PAGE | preflight)
        answers = [client.get("/metrics", headers=PAGE | {"Authorization": f"Bearer {sent}"}) for sent in (token, "no")]
    assert asked.status_code == (200 if allowed else 400)
    assert [answer.status_code for answer in answers] == ([200, 401] if allowed else [403, 403])
    for answer in (asked, *answers):
        assert answer.headers.get("access-control-allow-origin") == (origins[0] if allowed else None)
    if allowed:
        assert "authorization" in asked.headers["access-control-allow-headers"].lower()
        assert "x-warning" in answers[0].headers["access-control-expose-headers"]
