"""Servers of the micro model, in this process or in one of their own, and plain requests to them."""

import http.client
import json
import os
import re
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
import uvicorn

from xtts.trainer.serve.app import Server, make_app
from xtts.trainer.serve.settings import ServerSettings, listening_socket

XTTS_SYNTH = Path(sys.executable).with_name("xtts-synth")
NFE = (2, 4)
LONG = "many small words make one long text, " * 6
"""Some thirteen pieces."""


class Answer(NamedTuple):
    """An answer that has been read."""

    status: int
    headers: dict
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)


class Client:
    """Requests to a server of this machine."""

    def __init__(self, port, process=None):
        self.port, self.process = port, process

    def request(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        found = Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
        connection.close()
        return found

    def get(self, path, **headers):
        return self.request("GET", path, headers=headers)

    def post(self, content, **headers):
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        return self.request("POST", "/v1/audio/speech", body, {"Content-Type": "application/json"} | headers)

    def metric(self, name):
        return float(re.search(rf"^{re.escape(name)} (\S+)$", self.get("/metrics").body.decode(), re.MULTILINE)[1])


@contextmanager
def server_here(voice, **settings):
    """A server in a thread of this process, for a `WarmVoice` that may have others."""
    settings = ServerSettings(checkpoint=voice.source.checkpoint, port=0, nfe=NFE, **settings)
    bound = listening_socket(settings)
    running = uvicorn.Server(uvicorn.Config(make_app(Server(voice, settings)), log_level="warning", lifespan="on"))
    thread = threading.Thread(target=running.run, kwargs={"sockets": [bound]})
    thread.start()
    try:
        while not running.started:
            time.sleep(0.01)
        yield Client(bound.getsockname()[1])
    finally:
        running.should_exit = True
        thread.join()


@contextmanager
def running_server(folder, *arguments, **environment):
    """A server in a process of its own, once it is ready; it finds its compile cache by the environment alone."""
    wanted = (part for number in NFE for part in ("--nfe", number))
    command = [XTTS_SYNTH, "serve", "--ckpt", folder, "--port", "0", *wanted, *arguments]
    inherited = {name: value for name, value in os.environ.items() if name != "TF_XLA_FLAGS"}
    process = subprocess.Popen(
        [*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=inherited | environment
    )
    try:
        lines = []
        for line in process.stdout:
            lines.append(line)
            if found := re.match(r"ready after .* s: http://\S+:(\d+)/ ", line):
                break
        else:
            pytest.fail(f"no server: {lines} {process.stderr.read()}")
        yield Client(int(found[1]), process)
    finally:
        process.kill()
        process.communicate()
