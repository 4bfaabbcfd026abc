"""The Dockerfiles, read as text: no Docker builds them here."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = {file.suffix: file.read_text(encoding="utf-8") for file in sorted((ROOT / "docker").glob("Dockerfile.*"))}
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]


@pytest.mark.parametrize("kind", [".cpu", ".cuda"])
def test_what_is_installed_and_copied_is_there_and_the_command_runs_without_root(kind):
    text = FILES[kind].replace("\\\n", "")
    sent = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    sources = {source for some in re.findall(r"^COPY (?!--)(.*) ", text, re.MULTILINE) for source in some.split()}
    assert {"pyproject.toml", "shared"} < sources
    assert all((ROOT / source).exists() and f"!{source}" in sent for source in sources)
    extras = re.search(r"^ARG EXTRAS=(.*)$", text, re.MULTILINE)[1].split(",")
    assert ("gpu" in extras, set(extras) <= set(EXTRAS)) == (kind == ".cuda", True)
    assert not re.search(r"^(RUN|COPY) ", text.rpartition("\nUSER ")[2], re.MULTILINE), "installed after USER"
