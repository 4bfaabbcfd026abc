"""Servers in processes of their own: started, queried, stopped; and, in the long suite, other clients."""

import importlib.util
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from server_process import LONG, running_server, speak
from test_serve_speech import FAST, HELLO, assert_alike, pcm_of


def test_sigterm_stops_a_server_after_the_current_sentence(onnx_folder, spoken_by_command):
    with running_server(onnx_folder) as (client, process):
        assert client.get("/v1/models").json()["data"][0]["id"] == "small-voice"
        assert speak(client, FAST | {"input": HELLO}).content == spoken_by_command(HELLO)
        with ThreadPoolExecutor(1) as threads:
            waiting = threads.submit(speak, client, FAST | {"input": LONG * 18, "speed": 0.5})
            while not client.get("/health").json()["queue_length"]:
                time.sleep(0.01)
            process.send_signal(signal.SIGTERM)
            assert waiting.result().status_code == 503
            assert process.wait() == 0
        assert process.stdout.read() == "stopped\n"


@pytest.mark.long
def test_the_official_client_speaks(listening, tmp_path, spoken_by_command):
    openai = pytest.importorskip("openai")
    client = openai.OpenAI(base_url=f"{listening.base_url}/v1", api_key="none", max_retries=0)
    assert [model.id for model in client.models.list()] == ["small-voice"]
    asked = {"model": "small-voice", "voice": "default", "speed": 4.0}
    speech = client.audio.speech.create(**asked, input=HELLO, response_format="wav")
    assert speech.content == spoken_by_command(HELLO)
    asked |= {"input": LONG, "response_format": "pcm", "extra_body": {"seed": 3}}
    with client.audio.speech.with_streaming_response.create(**asked) as answer:
        answer.stream_to_file(tmp_path / "a.pcm")
    assert_alike((tmp_path / "a.pcm").read_bytes(), pcm_of(spoken_by_command(LONG, seed=3)))
    player = importlib.util.find_spec("openai.helpers.local_audio_player").origin
    assert "SAMPLE_RATE = 24000" in Path(player).read_text(encoding="utf-8")  # it needs a sound card to import
    with pytest.raises(openai.BadRequestError, match="'aac' is not one of mp3") as refused:
        client.audio.speech.create(model="small-voice", voice="alloy", input=HELLO, response_format="aac")
    assert refused.value.param == "response_format"
