"""The Dockerfiles, read as text: no Docker builds them here."""

import json
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted((ROOT / "docker").glob("Dockerfile.*"))
PINNED = re.compile(r"[\w./-]+:\d+\.\d+[\w.-]*")
SECRET = re.compile(r"(token|password|secret|api_?key)\w*\s*=", re.IGNORECASE)


def instructions(text):
    """[(instruction, its arguments)] with continued lines joined and comments left out."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(line.split(None, 1)[0].upper(), line.split(None, 1)[1]) for line in joined.splitlines() if line.strip()]


def stages(parsed):
    """The instructions of each stage, without FROM."""
    starts = [place for place, (name, _) in enumerate(parsed) if name == "FROM"]
    return [parsed[start + 1 : end] for start, end in zip(starts, [*starts[1:], None], strict=True)]


def last(stage, name):
    """The arguments of the last such instruction of a stage, or None."""
    return next((arguments for found, arguments in reversed(stage) if found == name), None)


def started(stage):
    """The command line that a container without arguments runs."""
    return [word for name in ("ENTRYPOINT", "CMD") for word in json.loads(last(stage, name) or "[]")]


def copied(parsed):
    """What COPY takes from the repository."""
    for name, arguments in parsed:
        if name == "COPY" and not arguments.startswith("--from="):
            yield from arguments.split()[:-1]


def faults(text):
    """What is wrong with a Dockerfile of this repository."""
    parsed = instructions(text)
    final = stages(parsed)[-1]
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    names = [name for name, _ in final]
    if not all(PINNED.fullmatch(arguments.split()[0]) for name, arguments in parsed if name == "FROM"):
        yield "a base image without a version"
    if (last(final, "USER") or "root").split(":")[0] in ("root", "0"):
        yield "runs as root"
    elif "RUN" in names[names.index("USER") :] or "COPY" in names[names.index("USER") :]:
        yield "installs after USER"
    if any(name == "ADD" for name, _ in parsed):
        yield "ADD, which also downloads and unpacks"
    if missing := [source for source in copied(parsed) if not (ROOT / source).exists() or f"!{source}" not in ignored]:
        yield f"does not find {missing}"
    if not started(final) or started(final)[0] not in scripts or started(final)[-1] != "--help":
        yield "starts something else than the help of a command"
    if set(json.loads(last(final, "VOLUME") or "[]")) != {"/work/data", "/work/runs"}:
        yield "other volumes than data and runs"
    if any(SECRET.search(arguments) for name, arguments in parsed if name in ("ENV", "ARG")):
        yield "holds a secret"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_dockerfile_has_no_fault(file):
    assert list(faults(file.read_text(encoding="utf-8"))) == []


def test_there_is_one_for_the_cpu_and_one_for_cuda():
    assert [file.suffix for file in FILES] == [".cpu", ".cuda"]
    extras = [re.search(r"^ARG EXTRAS=(.*)$", file.read_text(encoding="utf-8"), re.MULTILINE)[1] for file in FILES]
    assert ["gpu" in names.split(",") for names in extras] == [False, True]
    known = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert {name for names in extras for name in names.split(",")} <= set(known)


def test_only_what_the_wheel_is_built_from_is_sent_to_docker():
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if not line.startswith(("#", "!"))] == ["*", "**/__pycache__"]


@pytest.mark.parametrize(
    ("line", "changed", "fault"),
    [
        (":3.11.11-slim-bookworm", ":latest", "a base image without a version"),
        (":3.11.11-slim-bookworm", "", "a base image without a version"),
        ("USER lockstep", "USER root", "runs as root"),
        ("USER lockstep\n", "", "runs as root"),
        ("USER lockstep\n", "USER 0:0\n", "runs as root"),
        ("USER lockstep\n", "USER lockstep\nRUN pip install x\n", "installs after USER"),
        ("WORKDIR /source", "ADD https://example.org/x /x", "ADD, which also downloads and unpacks"),
        ("COPY shared shared", "COPY tests tests", "does not find ['tests']"),
        ("COPY shared shared", "COPY nothing shared", "does not find ['nothing']"),
        ('CMD ["xtts-train",', 'CMD ["xtts-run",', "starts something else than the help of a command"),
        (', "/work/runs"]', "]", "other volumes than data and runs"),
        ("PYTHONUNBUFFERED=1", "XTTS_TOKEN=abc", "holds a secret"),
    ],
)
def test_a_fault_is_seen(line, changed, fault):
    text = FILES[0].read_text(encoding="utf-8")
    assert line in text
    assert list(faults(text.replace(line, changed))) == [fault]
