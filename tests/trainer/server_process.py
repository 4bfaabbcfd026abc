"""Servers of the micro model, without a socket or with one, in this process or in one of their own."""

import json
import os
import re
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
import uvicorn
from starlette.testclient import TestClient

from xtts.trainer.serve.app import Server, make_app
from xtts.trainer.serve.cli import serve
from xtts.trainer.serve.settings import ServerSettings
from xtts.trainer.web.address import listening_socket

XTTS_SYNTH = Path(sys.executable).with_name("xtts-synth")
NFE = (2, 4)
LONG = "many small words make one long text, " * 6
"""Some thirteen pieces."""


def settings_of(**changes):
    """Those of the command, with fewer evaluations."""
    given = serve.make_context("serve", ["--ckpt", "voice"]).params
    del given["checkpoint"]
    return ServerSettings(**given | {"nfe": NFE, **changes})


def speak(client, content, **headers):
    """The answer to a speech request."""
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    return client.post("/v1/audio/speech", content=body, headers={"Content-Type": "application/json"} | headers)


def app_here(voice, **settings):
    """(the application, its settings) for a `ServedVoice` that may have others."""
    settings = settings_of(port=0, **settings)
    return make_app(Server(voice, settings)), settings


def client_here(voice, **settings):
    """A client of an application that listens nowhere."""
    app, _ = app_here(voice, **settings)
    return TestClient(app, base_url="http://localhost", raise_server_exceptions=False)


@contextmanager
def listening_server(voice, **settings):
    """A client of a server that listens, in a thread of this process."""
    app, settings = app_here(voice, **settings)
    bound = listening_socket(settings.host, settings.port)
    running = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="on"))
    thread = threading.Thread(target=running.run, kwargs={"sockets": [bound]})
    thread.start()
    try:
        while not running.started:
            time.sleep(0.01)
        with client_of(bound.getsockname()[1]) as client:
            yield client
    finally:
        running.should_exit = True
        thread.join()


def client_of(port):
    """A client of a server of this machine."""
    return httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=None, trust_env=False)


@contextmanager
def running_server(folder, *arguments, **environment):
    """(client, process) of a server that is ready; it finds its compile cache by the environment alone."""
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
        with client_of(int(found[1])) as client:
            yield client, process
    finally:
        process.kill()
        process.communicate()
