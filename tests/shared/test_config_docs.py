"""docs/configuration.md is written from shared/config.py and model_config.py, and is complete."""

import runpy
from pathlib import Path

from xtts.shared.config_files import known_keys

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_names_every_key_of_the_configuration():
    script = runpy.run_path(str(DOCS / "make_configuration.py"))
    page = script["page"]()
    stored = script["PAGE"].read_text(encoding="utf-8")
    assert stored == page, f"docs/configuration.md is not up to date; write it again: {script['COMMAND']}"
    assert all(f"\n| `{key.rpartition('.')[2]}` | " in page for key in known_keys() if "." in key)
