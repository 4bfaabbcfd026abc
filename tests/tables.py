"""Tables of cases, in YAML beside the tests that go through them."""

from pathlib import Path
from typing import Any

import yaml


def cases(test: str) -> dict[str, Any]:
    """The tables by name of a file of tests: those of the .yaml beside it."""
    return yaml.safe_load(Path(test).with_suffix(".yaml").read_text(encoding="utf-8"))
