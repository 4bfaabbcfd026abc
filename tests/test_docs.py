"""README and docs/: every path and link in them exists, and what has a list there is in it."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FOLDERS = "benchmarks|configs|docker|docs|examples|precompute|shared|tests|trainer"
PATH = re.compile(rf"(?<![\w/.~:-])(?:{FOLDERS})/[\w./-]*")
LINK = re.compile(r"\]\(([^)]+)\)")
GONE = re.compile(r"`([\w/.-]+)`, last in the tree at commit (\w+)")
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
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


def test_a_program_that_is_gone_is_in_the_commit_named_beside_its_figures():
    found = {match for text in TEXTS.values() for match in GONE.findall(text)}
    assert found
    for path, commit in found:
        assert not (ROOT / path).exists(), path
        if _git("rev-parse", "--verify", f"{commit}^{{commit}}") == 0:  # not in a clone of the last commits
            assert _git("cat-file", "-e", f"{commit}:{path}") == 0, path


def _git(*words):
    return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True).returncode


def test_the_readme_leads_to_every_page_and_that_of_the_installation_has_a_row_for_every_extra():
    assert all(f"docs/{page.name}" in TEXTS[PAGES[0]] for page in PAGES[1:])
    rows = re.findall(r"^\| `(\w+)` \|", TEXTS[ROOT / "docs" / "installation.md"], re.MULTILINE)
    assert rows == list(EXTRAS)
