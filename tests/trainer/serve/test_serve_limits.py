"""What is refused, and what ends early: malformed and hostile requests, a full queue, time, clients that leave."""

import http.client
import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from server_process import client_here, listening_server, settings_of, speak
from tables import cases

from xtts.trainer.serve.served_voice import ServedVoice
from xtts.trainer.synth_cli import main

CASES = cases(__file__)

HELLO = {"input": "hello", "response_format": "wav", "speed": 4.0}
DEEP = b'{"input":' + b"[" * 10_000 + b"]" * 10_000 + b"}"


@pytest.mark.parametrize(("body", "param", "words"), [
    (b"[]", None, "an object"), (b"{}", "input", "required"), (DEEP, None, "Invalid JSON"),
    (b'{"input": "\\ud800"}', "input", "at least 1 character"), (b'{"input": "caf\xe9"}', None, "Invalid JSON"),
    ({"input": ""}, "input", "at least 1 character"), ({"input": 7}, "input", "string"),
    ({"input": "a" * 2001}, "input", "2001 characters to speak, expected at most 2000"),
    ({"input": "9" * 500}, "input", "2499 characters to speak, expected at most 2000"),
    ({"input": "\u65e5\u672c \n"}, "input", "nothing to speak"),
    (b'{"input": "a", "speed": NaN}', "speed", "speed: nan, expected 0.25 to 4"),
    (HELLO | {"seed": 10**3000}, "seed", "0, expected a whole number, 0 to 2147483647"),
    *((HELLO | fields, param, words) for fields, param, words in CASES["fields"]),
], ids=lambda value: None if isinstance(value, str) and len(value) < 40 else "-")
def test_a_malformed_request_is_told_which_field_is_wrong(server, body, param, words):
    answer = speak(server, body)
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert (error["type"], error["param"]) == ("invalid_request_error", param)
    assert words in error["message"]
    assert len(answer.content) < 500


def test_other_refusals(server):
    assert speak(server, b"{}", **{"Content-Type": "text/plain"}).status_code == 415
    assert speak(server, b"[" * 100_000).status_code == 413
    wrong_method = server.get("/v1/audio/speech")
    assert (wrong_method.status_code, wrong_method.headers["allow"]) == (405, "POST")
    for host in ("evil.example", "127.0.0.1.evil.example:80", "localhost.evil.example", "evil@localhost", ""):
        for answer in (speak(server, HELLO, Host=host), server.get("/", headers={"Host": host})):
            assert (answer.status_code, answer.json()["error"]["type"]) == (400, "invalid_request_error"), host
            assert f"host name {host.partition(':')[0]!r} is not this machine's" in answer.json()["error"]["message"]
            assert "XTTS_TOKEN" in answer.json()["error"]["message"]
    for host in ("localhost:8000", "127.0.0.1", "[::1]:8000"):
        assert server.get("/v1/audio/voices", headers={"Host": host}).status_code == 200, host
    for origin in ("http://evil.example", "null", "http://localhost:8000", "http://localhost.evil.example"):
        answer = speak(server, HELLO, Origin=origin)
        assert (answer.status_code, answer.json()["error"]["type"]) == (403, "permission_error"), origin
        assert f"origin {origin} not allowed; if it is this server's own, let" in answer.json()["error"]["message"]
    assert speak(server, HELLO, Origin="http://localhost").status_code == 200


def test_only_files_of_the_page_are_sent(listening):
    """Paths as they are written: clients and `TestClient` tidy them up."""
    for path in ("/nothing", "/../pyproject.toml", "/page.js/../../cli.py", "/%2e%2e/cli.py", "/v1/audio/mel/../../x"):
        connection = http.client.HTTPConnection("127.0.0.1", listening.base_url.port)
        connection.request("GET", path)
        answer = connection.getresponse()
        assert answer.status == 404, path
        assert json.load(answer)["error"]["message"], path
        connection.close()


def test_a_failure_of_the_server_is_told_without_its_reason(served_voice, monkeypatch):
    monkeypatch.setattr(served_voice, "capabilities", None)
    with client_here(served_voice) as client:
        answer = client.get("/v1/audio/voices")
    assert (answer.status_code, answer.json()["error"]["type"]) == (500, "server_error")
    assert "NoneType" not in answer.text
    assert "Traceback" not in answer.text


def test_answers_carry_headers_for_browsers(server):
    for path in ("/", "/page.js", "/page.css", "/v1/audio/voices"):
        answer = server.get(path)
        assert answer.status_code == 200
        assert "default-src 'self'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_recording_is_refused_by_a_model_that_imitates_none(server):
    sound = {"content": b"no sound", "headers": {"Content-Type": "audio/wav"}}
    answer = server.put("/v1/audio/voices/mine", **sound)
    assert answer.status_code == 400
    assert "cannot imitate recordings" in answer.json()["error"]["message"]
    assert server.put("/v1/audio/voices/mine", content=b"{}").status_code == 415
    large = server.put("/v1/audio/voices/mine", **sound | {"content": bytes(2**22 + 1)})
    assert large.status_code == 413


def test_of_two_recordings_with_one_name_at_once_one_is_refused(imitator, recordings):
    low, high, both = (recordings / f"{name}.wav" for name in ("low", "high", "both"))
    settings, doubts, source = settings_of(nfe=(2,), speaker_wav=(low, both)), [], imitator[1].source
    voice, unlike = ServedVoice(source, settings, doubts.append), "% of the recording is unlike the voice taken from it"
    assert [(line.startswith(f"{both}: "), unlike in line) for line in doubts] == [(True, True)]
    with listening_server(voice) as client, ThreadPoolExecutor(2) as threads:
        sound = {"content": high.read_bytes(), "headers": {"Content-Type": "audio/wav"}}
        answers = list(threads.map(lambda _: client.put("/v1/audio/voices/high", **sound), range(2)))
        assert sorted(answer.status_code for answer in answers) == [204, 400]
        assert [voice["id"] for voice in client.get("/v1/audio/voices").json()["voices"]] == ["low", "both", "high"]
        assert not any("x-warning" in answer.headers for answer in answers)
        sound["content"] = both.read_bytes()
        assert unlike in client.put("/v1/audio/voices/more", **sound).headers["x-warning"]


@contextmanager
def raw_request(port, content):
    """The connection of a speech request, closed at the end whatever has been answered."""
    body = json.dumps(content).encode()
    head = f"POST /v1/audio/speech HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
    with socket.create_connection(("127.0.0.1", port)) as raw:
        raw.sendall(head.encode() + b"Content-Type: application/json\r\n\r\n" + body)
        yield raw


@pytest.mark.parametrize("stream", [{"stream_format": "audio"}, {}])
def test_a_client_that_leaves_ends_the_work(listening, monkeypatch, stream):
    began, speak_once = threading.Event(), ServedVoice.speak

    def speak_without_end(*given):
        """The first piece of a request, for ever."""
        piece = next(speak_once(*given))._replace(last=False)
        began.set()
        while True:
            yield piece

    monkeypatch.setattr(ServedVoice, "speak", speak_without_end)
    with raw_request(listening.base_url.port, HELLO | stream) as raw:
        if stream:
            assert raw.recv(100).startswith(b"HTTP/1.1 200")
        began.wait()
    while listening.get("/health").json()["queue_length"]:
        time.sleep(0.01)
    monkeypatch.undo()
    assert speak(listening, HELLO).status_code == 200


def test_a_full_queue_says_429(served_voice):
    """That it empties again: test_request_queue.py."""
    with client_here(served_voice, max_requests=0) as client:
        refused = speak(client, HELLO)
    assert (refused.status_code, refused.json()["error"]["type"]) == (429, "rate_limit_error")
    assert refused.headers["retry-after"] == "1"


def test_a_token_is_asked_for(served_voice):
    token = "a long text that nobody guesses"
    with client_here(served_voice, token=token) as client:
        assert [client.get(path).status_code for path in ("/", "/page.js", "/health")] == [200] * 3
        for path in ("/v1/audio/voices", "/v1/models", "/docs"):
            assert client.get(path).status_code == 401
            assert client.get(path, headers={"Authorization": "Bearer wrong"}).status_code == 401
        assert speak(client, HELLO).json()["error"]["type"] == "authentication_error"
        right = {"Authorization": f"Bearer {token}"}
        for more in ({}, {"Host": "voice.example", "Origin": "https://voice.example"}):  # behind a proxy that keeps it
            assert client.get("/v1/audio/voices", headers=right | more).status_code == 200


@pytest.mark.parametrize(("arguments", "message"), CASES["arguments"])
def test_what_cannot_be_served_is_said_in_one_line(call, onnx_folder, listening, arguments, message):
    arguments, message = (
        [text.format(taken=listening.base_url.port) for text in texts] for texts in (arguments, [message])
    )
    err = call(main, "serve", "--ckpt", onnx_folder, "--port", 0, *arguments).refused()
    assert message[0] in err
    assert len(err.splitlines()) == 1
