"""Tables of cases beside the tests that go through them: in YAML, or lines with tabs."""

from pathlib import Path
from typing import Any

import yaml


def cases(test: str) -> dict[str, Any]:
    """The tables by name of a file of tests: those of the .yaml beside it."""
    return yaml.safe_load(Path(test).with_suffix(".yaml").read_text(encoding="utf-8"))


def tsv(test: str, name: str) -> list[list[str]]:
    """The lines of a .tsv beside a file of tests, without those that begin with #."""
    lines = Path(test).with_name(f"{name}.tsv").read_text(encoding="utf-8").splitlines()
    return [line.split("\t") for line in lines if not line.startswith("#")]
