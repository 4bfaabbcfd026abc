"""README and docs/: paths and links exist, commands are understood, figures are named by what measured them.

The Dockerfiles are read as text: no Docker builds them here.
"""

import json
import re
import runpy
import shlex
import subprocess
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import click
import pytest

from xtts.precompute import cli
from xtts.precompute.corpus.listing import LAYOUTS
from xtts.shared.cache import cache_spec
from xtts.trainer.stored.checkpoint import FORMAT_VERSION

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FOLDERS = "benchmarks|configs|docker|docs|examples|precompute|shared|tests|trainer"
PATH = re.compile(rf"(?<![\w/.~:-])(?:{FOLDERS})/[\w./-]*")
LINK = re.compile(r"\]\((?!https:)([^)]+)\)")
"""Those within the tree."""
GONE = re.compile(r"`([\w/.-]+)`, last in the tree at commit (\w+)")
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
COMMAND = re.compile(r"^    (?:[A-Z_]+=\S+ )?((?:xtts-[a-z]+|python benchmarks/|make )(?:\\\n|[^#\n])*)", re.MULTILINE)
TEXTS = {page: page.read_text(encoding="utf-8") for page in PAGES}


def anchors(page):
    """The anchors that a page's headings give."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_path_and_link_of_a_page_exists(page):
    named = {path.rstrip(".") for path in PATH.findall(GONE.sub("", TEXTS[page]))}
    assert sorted(path for path in named if not (ROOT / path).exists()) == []
    for link in LINK.findall(TEXTS[page]):
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        assert target.is_file(), link
        assert not anchor or anchor in anchors(target), link


def commands():
    """The commands of all pages, each once."""
    found = {" ".join(line.replace("\\\n", " ").split()) for text in TEXTS.values() for line in COMMAND.findall(text)}
    return sorted(line.replace("…", "").replace("...", "x") for line in found)


@pytest.mark.parametrize("line", commands())
def test_every_command_of_the_pages_is_one(line, tmp_path, monkeypatch):
    """Options, their types and the number of words are those of the program; nothing runs."""
    checkpoint = tmp_path / "runs" / "newest" / "checkpoints" / "step-1"
    checkpoint.mkdir(parents=True)
    (checkpoint / "checkpoint.json").write_text(json.dumps({"format_version": FORMAT_VERSION, "kind": "acoustic"}))
    monkeypatch.chdir(tmp_path)
    program, *words = shlex.split(line)
    if program == "make":
        subprocess.run(["make", "--dry-run", *words], cwd=ROOT, check=True, capture_output=True)
    elif program == "python":
        assert (ROOT / words[0]).is_file()
        known = set(re.findall(r"--[a-z-]+", (ROOT / words[0]).read_text(encoding="utf-8"))) | {"--quick", "--out"}
        assert {word for word in words[1:] if word.startswith("--")} <= known
    else:
        (entry,) = entry_points(group="console_scripts", name=program)
        command = entry.load()
        if isinstance(command, click.Group):
            words = words if words[0] in command.commands else ["speak", *words]
            command = command.commands[words.pop(0)]
        command.make_context(program, words)  # raises click's error


def test_the_index_leads_to_every_page_and_that_of_the_installation_has_a_row_for_every_extra():
    index = TEXTS[ROOT / "docs" / "README.md"]
    assert [page.name for page in PAGES[1:] if page.name != "README.md" and f"({page.name})" not in index] == []
    rows = re.findall(r"^\| `([\w-]+)` \|", TEXTS[ROOT / "docs" / "installation.md"], re.MULTILINE)
    assert rows == list(EXTRAS)


def test_help_and_page_name_every_layout():
    page = TEXTS[ROOT / "docs" / "corpus.md"].partition("\n## Layouts\n")[2].partition("\n## ")[0]
    assert sorted(re.findall(r"^\| `(\w[\w-]*)` \|", page, re.MULTILINE)) == sorted(LAYOUTS)
    (option,) = (option for option in cli.build.params if option.name == "layout")
    assert sorted(re.findall(r"[\w-]+", option.help.partition(": ")[2].replace(" or ", " "))) == sorted(LAYOUTS)


def test_the_version_of_the_cache_is_the_same_wherever_it_is_written():
    text = TEXTS[ROOT / "docs" / "cache-format.md"] + (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    stated = re.findall(r"(?:format version|`format_version` \||Caches have format) (\d+)", text)
    assert stated == [str(cache_spec.FORMAT_VERSION)] * 3


def test_the_recipes_name_what_there_is():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("\n## Recipes\n")[2].partition("\n## ")[0]
    named = {name.rstrip("/") for name in re.findall(r"`([\w.][\w./-]*)`", text)}
    files = [path for folder in FOLDERS.split("|") for path in (ROOT / folder).rglob("*")]
    known = {name for path in files for name in (path.name, path.relative_to(ROOT).as_posix())} | {"CHANGELOG.md"}
    words = re.findall(r"[\w-]+", " ".join(path.read_text(encoding="utf-8") for path in files if path.suffix == ".py"))
    assert len(named) > 60
    assert sorted(named - known - {*words}) == []


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_what_a_dockerfile_copies_and_installs_is_there(kind):
    text = (ROOT / "docker" / f"Dockerfile.{kind}").read_text(encoding="utf-8").replace("\\\n", "")
    sent = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    sources = {source for some in re.findall(r"^COPY (?!--)(.*) ", text, re.MULTILINE) for source in some.split()}
    assert {"pyproject.toml", "shared"} < sources
    assert all((ROOT / source).exists() and f"!{source}" in sent for source in sources)
    assert set(re.search(r"^ARG EXTRAS=(.*)$", text, re.MULTILINE)[1].split(",")) <= set(EXTRAS)


def test_the_demo_is_as_new_as_its_list_and_our_voice():
    page = (ROOT / "docs" / "demo" / "index.html").read_text(encoding="utf-8")
    assert runpy.run_path(str(ROOT / "docs" / "make_demo.py"))["made_of"]() in page, "make demo"
    assert len(page) < 4e6
    assert not re.search(r"<script|https?:", page)
