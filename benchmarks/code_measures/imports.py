"""The longest chain of modules of one stage, each of which imports the next."""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

Graph = Mapping[str, frozenset[str]]
"""Module to the modules of its stage that it imports, at its top or inside a function."""


def longest_chain(root: Path, stage: str) -> list[str]:
    """Names of the modules below the stage, the one that imports first."""
    graph, known = stage_graph(root, stage), dict[str, list[str]]()

    def below(module: str, above: frozenset[str]) -> list[str]:
        if module not in known:
            chains = (below(used, above | {module}) for used in sorted(graph[module] - above - {module}))
            known[module] = [module, *max(chains, key=len, default=[])]
        return known[module]

    return max((below(module, frozenset()) for module in sorted(graph)), key=len)


def stage_graph(root: Path, stage: str) -> Graph:
    """The imports between the modules of one stage; a folder's `__init__` goes by the folder's name."""
    files = {}
    for file in sorted((root / stage).rglob("*.py")):
        parts = file.relative_to(root / stage).with_suffix("").parts
        files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return {module: frozenset(_imported(file, stage, files)) for module, file in files.items()}


def _imported(file: Path, stage: str, files: Mapping[str, Path]) -> Iterator[str]:
    prefix = f"xtts.{stage}"
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.ImportFrom) or f"{node.module}.".partition(f"{prefix}.")[0]:
            continue
        module = str(node.module).removeprefix(prefix).removeprefix(".")
        for alias in node.names:
            name = f"{module}.{alias.name}".removeprefix(".")
            if name in files or module in files:
                yield name if name in files else module
