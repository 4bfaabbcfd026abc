"""The Dockerfiles, read as text: the tests build none."""

import re

import pytest
from test_docs import EXTRAS, ROOT


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
