"""The Dockerfiles, read as text: no Docker builds them here."""

import json
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = {file.suffix: file.read_text(encoding="utf-8") for file in sorted((ROOT / "docker").glob("Dockerfile.*"))}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
IGNORED = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()


def instructions(text):
    """[(instruction, its arguments)] with continued lines joined and comments left out."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [tuple(line.split(None, 1)) for line in joined.splitlines()]


@pytest.mark.parametrize("text", FILES.values(), ids=FILES)
def test_an_image_is_built_of_pinned_bases_and_runs_a_command_without_root(text):
    parsed = instructions(text)
    bases = [arguments.split()[0] for name, arguments in parsed if name == "FROM"]
    assert all(re.fullmatch(r"[\w./-]+:\d+\.\d+[\w.-]*", base) for base in bases)
    names = [name for name, _ in parsed]
    final = dict(parsed[len(names) - names[::-1].index("FROM") :])  # the last of each
    assert final["USER"].split(":")[0] not in ("root", "0")
    assert not {"RUN", "COPY"} & {*names[len(names) - names[::-1].index("USER") :]}, "installed after USER"
    assert "ADD" not in names, "which also downloads and unpacks"
    started = [word for name in ("ENTRYPOINT", "CMD") for word in json.loads(final.get(name, "[]"))]
    assert started[0] in PROJECT["scripts"]
    assert started[-1] == "--help"
    assert set(json.loads(final["VOLUME"])) == {"/work/data", "/work/runs"}
    secret = re.compile(r"(token|password|secret|api_?key)\w*\s*=", re.IGNORECASE)
    assert not any(secret.search(arguments) for name, arguments in parsed if name in ("ENV", "ARG"))


@pytest.mark.parametrize("text", FILES.values(), ids=FILES)
def test_what_is_copied_is_there_and_is_sent_to_docker(text):
    copied = [given.split()[:-1] for name, given in instructions(text) if name == "COPY" and "--from=" not in given]
    sources = {source for some in copied for source in some}
    assert {"pyproject.toml", "shared"} < sources
    assert all((ROOT / source).exists() and f"!{source}" in IGNORED for source in sources)


def test_there_is_one_for_the_cpu_and_one_for_cuda_and_only_the_wheels_sources_are_sent():
    extras = {kind: re.search(r"^ARG EXTRAS=(.*)$", text, re.MULTILINE)[1].split(",") for kind, text in FILES.items()}
    assert {kind: "gpu" in names for kind, names in extras.items()} == {".cpu": False, ".cuda": True}
    assert {name for names in extras.values() for name in names} <= set(PROJECT["optional-dependencies"])
    assert [line for line in IGNORED if not line.startswith(("#", "!"))] == ["*", "**/__pycache__"]
