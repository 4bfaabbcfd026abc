"""The Dockerfiles, read as text: no Docker builds them here. What needs only a shell is run."""

import os
import re
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
from test_docs import EXTRAS, ROOT, TEXTS


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_what_is_copied_and_installed_is_there_and_the_command_runs_without_root(kind):
    text = (ROOT / "docker" / f"Dockerfile.{kind}").read_text(encoding="utf-8").replace("\\\n", "")
    sent = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    sources = {source for some in re.findall(r"^COPY (?!--)(.*) ", text, re.MULTILINE) for source in some.split()}
    assert {"pyproject.toml", "shared"} < sources
    assert all((ROOT / source).exists() and f"!{source}" in sent for source in sources)
    extras = re.search(r"^ARG EXTRAS=(.*)$", text, re.MULTILINE)[1].split(",")
    assert ("gpu" in extras, set(extras) <= set(EXTRAS)) == (kind == "cuda", True)
    assert not re.search(r"^(RUN|COPY) ", text.rpartition("\nUSER ")[2], re.MULTILINE), "installed after USER"


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
@pytest.mark.parametrize(("extras", "wanted"), [("judge", True), ("phonemes,judge", True), ("phonemes,train", False)])
def test_a_compiler_is_installed_for_the_extra_that_needs_one(kind, extras, wanted, tmp_path):
    text = (ROOT / "docker" / f"Dockerfile.{kind}").read_text(encoding="utf-8").replace("\\\n", "")
    build, _, _ = text.partition("COPY ")
    (command,) = re.findall(r"^RUN (.*)$", build, re.MULTILINE)
    fake = tmp_path / "apt-get"
    fake.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\n')
    fake.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    subprocess.run(["sh", "-c", command], env={"PATH": path, "EXTRAS": extras}, check=True)
    assert ((tmp_path / "asked").exists() and "gcc" in (tmp_path / "asked").read_text()) == wanted


@pytest.mark.parametrize(("status", "code"), [(200, 0), (503, 1)])
def test_the_health_command_of_the_page_asks_the_server(status, code):
    class Health(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(status if self.path == "/health" else 404)
            self.end_headers()

        def log_message(self, *_):
            pass

    (command,) = re.findall(r"--health-cmd '([^']+)'", TEXTS[ROOT / "docs" / "installation.md"])
    with HTTPServer(("127.0.0.1", 0), Health) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        command = command.replace(":8000/", f":{server.server_port}/")
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        done = subprocess.run(
            ["sh", "-c", command], env=os.environ | {"PATH": path, "no_proxy": "*"}, capture_output=True, check=False
        )
        server.shutdown()
    assert done.returncode == code, done.stderr
