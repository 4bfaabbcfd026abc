"""Files, lines, functions and words of a source tree."""

import ast
import statistics
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

STAGES = ("shared", "precompute", "trainer")
FOLDERS = (*STAGES, "benchmarks", "docs", "examples", "tests")


@dataclass(frozen=True, kw_only=True)
class Function:
    """One function: its name with its file, lines from `def` to the end, and parameters without `self` and `cls`."""

    name: str
    lines: int
    parameters: int


def folder_rows(root: Path) -> list[dict[str, object]]:
    """Files and lines of Python by folder, the largest file of each, and the most files that share a folder."""
    rows: list[dict[str, object]] = []
    for folder in FOLDERS:
        files = {file: len(file.read_text(encoding="utf-8").splitlines()) for file in (root / folder).rglob("*.py")}
        if files:
            longest = max(files, key=lambda file: files[file])
            beside = Counter(file.parent for file in files if file.stem != "__init__").values()
            rows.append({
                "folder": f"{folder}/", "files": len(files), "lines": sum(files.values()), "most_in_one": max(beside),
                "longest_file": f"{longest.relative_to(root).as_posix()}, {files[longest]}",
            })  # fmt: skip
    return rows


def functions(root: Path) -> Iterator[Function]:
    """Every function of the stages; the options of click commands are no parameters of a call."""
    for file in (file for stage in STAGES for file in sorted((root / stage).rglob("*.py"))):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                is_command = any("command" in ast.unparse(decorator) for decorator in node.decorator_list)
                named = node.args.posonlyargs + node.args.args + node.args.kwonlyargs
                count = len([argument for argument in named if argument.arg not in ("self", "cls")])
                yield Function(
                    name=f"{file.relative_to(root).as_posix()} {node.name}",
                    lines=(node.end_lineno or node.lineno) - node.lineno + 1,
                    parameters=0 if is_command else count,
                )


def function_rows(root: Path) -> list[dict[str, object]]:
    """By stage: number of functions, median and longest length, longest list of parameters."""
    found, rows = list(functions(root)), list[dict[str, object]]()
    for stage in STAGES:
        inside = [function for function in found if function.name.startswith(f"{stage}/")]
        longest = max(inside, key=lambda function: function.lines)
        widest = max(inside, key=lambda function: function.parameters)
        rows.append({
            "stage": stage, "functions": len(inside),
            "median_lines": statistics.median(function.lines for function in inside),
            "longest": f"{longest.name.rpartition('/')[2]}, {longest.lines}",
            "most_parameters": f"{widest.name.rpartition('/')[2]}, {widest.parameters}",
        })  # fmt: skip
    return rows


def readme_words(root: Path) -> int:
    """Words of README.md."""
    return len((root / "README.md").read_text(encoding="utf-8").split())
