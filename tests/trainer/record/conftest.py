"""A recorder that listens nowhere."""

import pytest
from record_parts import PROMPTS, wav_of
from starlette.testclient import TestClient

from xtts.trainer.record.app import Recorder, make_app
from xtts.trainer.record.making import VoiceMaker
from xtts.trainer.record.phone import Ear
from xtts.trainer.record.takes import Takes


@pytest.fixture
def recorder(tmp_path):
    folder = tmp_path / "my-voice"
    return Recorder(Takes(folder, PROMPTS), "en", VoiceMaker(folder, "en", ()), Ear("en", "none"))


@pytest.fixture
def client(recorder):
    (recorder.takes.folder).mkdir()
    with TestClient(make_app(recorder), base_url="http://localhost", raise_server_exceptions=False) as found:
        yield found


@pytest.fixture
def send(client):
    """`send(prompt, samples)`: the answer to a take."""

    def post(prompt, samples, **form):
        data = samples if isinstance(samples, bytes) else wav_of(samples, **form)
        return client.post("/api/takes", params={"prompt": prompt}, content=data, headers={"Content-Type": "audio/wav"})

    return post
