"""README and docs/: every path and link in them exists, and the README stays short."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FOLDERS = "benchmarks|configs|docker|docs|examples|precompute|shared|tests|trainer"
PATH = re.compile(rf"(?<![\w/.~-])(?:{FOLDERS})/[\w./-]*")
LINK = re.compile(r"\]\(([^)]+)\)")
MOST_WORDS = 1000


def anchors(page):
    """The anchors that a page's headings give."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_path_that_a_page_names_exists(page):
    named = {path.rstrip(".") for path in PATH.findall(page.read_text(encoding="utf-8"))}
    missing = sorted(path for path in named if not (ROOT / path).exists())
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_of_a_page_leads_somewhere(page):
    for link in LINK.findall(page.read_text(encoding="utf-8")):
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        assert target.is_file(), link
        assert not anchor or anchor in anchors(target), link


def test_the_readme_is_short_and_leads_to_every_page():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.split()) <= MOST_WORDS
    assert all(f"docs/{page.name}" in text for page in PAGES[1:])


def test_the_installation_page_has_a_row_for_every_extra():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    text = (ROOT / "docs" / "installation.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE) == list(project["optional-dependencies"])


def test_the_architecture_page_answers_ten_questions_with_a_file_each():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (Where .+\?) \| `([\w./]+\.py)` \|$", text, re.MULTILINE)
    assert len(rows) == len({question for question, _ in rows}) == 10
    assert all((ROOT / file).is_file() for _, file in rows)


def test_every_folder_of_the_stages_is_in_the_architecture_page():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    folders = {
        f"{path.parent.relative_to(ROOT).as_posix()}/"
        for stage in ("precompute", "shared", "trainer")
        for path in (ROOT / stage).glob("*/__init__.py")
    }
    assert all(f"| `{folder}` |" in text for folder in folders), folders
