"""Names of a package that are imported on first use, so that `--help` loads nothing heavy (PEP 562)."""

import importlib
from collections.abc import Callable, Mapping
from typing import Any


def lazy_names(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of `package`, which imports each name from its module in the package."""

    def load(name: str) -> Any:  # noqa: ANN401 - each name has its own type, given to type checkers by the package
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{package}.{modules[name]}"), name)

    return load
