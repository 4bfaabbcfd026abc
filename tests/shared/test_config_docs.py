"""docs/configuration.md is written from shared/config.py and model_config.py, and says all of it."""

import importlib.util
from pathlib import Path

import pytest

from xtts.shared.config_files import known_keys

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("make_configuration", DOCS / "make_configuration.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_the_configuration_says(script):
    stored = script.PAGE.read_text(encoding="utf-8") if script.PAGE.exists() else ""
    assert stored == script.page(), f"docs/configuration.md is not up to date; write it again: {script.COMMAND}"


def test_every_key_has_a_row_with_its_type_and_meaning(script):
    rows, section = {}, ""
    for line in script.page().splitlines():
        if line.startswith("## "):
            section = line.removeprefix("## ")
        elif line.startswith("| `"):
            cells = line.strip("| ").split(" | ")
            rows[f"{section}.{cells[0].strip('`')}"] = cells
    keys = {key for key in known_keys() if "." in key}
    assert keys <= set(rows)
    assert all(cell.strip() for key in keys for cell in rows[key])
