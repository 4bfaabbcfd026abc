"""The Dockerfiles, read as text: no Docker builds them here. What needs only a shell is run."""

import os
import re
import subprocess
import sys
from functools import partial
from http.server import HTTPServer, SimpleHTTPRequestHandler
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


@pytest.mark.parametrize("healthy", [True, False])
def test_the_health_command_of_the_page_asks_the_server(healthy, tmp_path):
    (command,) = re.findall(r"--health-cmd '([^']+)'", TEXTS[ROOT / "docs" / "installation.md"])
    (tmp_path / ("health" if healthy else "other")).touch()
    with HTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=tmp_path)) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        command = command.replace(":8000/", f":{server.server_port}/")
        done = subprocess.run(["sh", "-c", command], env=os.environ | {"PATH": path, "no_proxy": "*"}, check=False)
        server.shutdown()
    assert (done.returncode == 0) == healthy
