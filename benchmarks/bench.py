"""Every benchmark of the project, one after another: one table with the ratios first, one JSON, and the pictures.

    python benchmarks/bench.py [--quick] [--out build/benchmark/results.json]
    python benchmarks/bench.py --readme [--out build/benchmark/results.json]

The first form measures, and writes FILE.json, FILE.md (all tables) and the pictures next to it. The second does not
measure: it stores the figures of such a file, and updates the marked parts of README.md and docs/experiments.md and the
pictures in docs/.
"""

import argparse
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from reporting.pictures import draw
from reporting.readme import DOCUMENTS, PARTS, bench_lines, stored_figures, with_parts
from reporting.report import machine, write_json

ROOT = Path(__file__).parents[1]
BENCHMARKS = ("precompute", "rebuild", "training")
RESULTS = ROOT / "benchmarks" / "results.json"
PACKAGES = ("lockstep-tts", "tensorflow", "keras", "numpy", "scipy", "librosa", "torch")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="less of everything: indicative, under ten minutes")
    parser.add_argument("--readme", action="store_true", help="write README and docs from --out, measure nothing")
    parser.add_argument("--out", type=Path, help="the JSON file")
    options = parser.parse_args()
    options.out = options.out or (RESULTS if options.readme else ROOT / "build/benchmark/results.json")
    if options.readme:
        return publish(options.out)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    figures = measure(options)
    parts = ((name, write(figures)) for name, write in PARTS.items())
    page = [line for name, lines in parts if lines for line in (f"## {name}", "", *lines, "")]
    options.out.with_suffix(".md").write_text("\n".join(page), encoding="utf-8")
    draw(figures, options.out.parent)
    print("\n".join(bench_lines(figures)))
    print(f"\n{sum(figures['seconds'].values()):,} s in all")
    print(f"all figures: {options.out}, {options.out.with_suffix('.md')}; pictures: {options.out.parent}/*.svg")


def publish(file: Path) -> None:
    """Store the figures of a full run with their pictures, and update README and docs."""
    if not file.is_file():
        sys.exit(f"--out {file}: no such file; measure first, without --readme")
    if json.loads(file.read_text(encoding="utf-8"))["quick"]:
        sys.exit(f"--out {file}: figures of a quick run, which the README does not show; measure without --quick")
    if file.resolve() != RESULTS:
        shutil.copyfile(file, RESULTS)
    figures = stored_figures(RESULTS)
    draw(figures, ROOT / "docs")
    for document in (ROOT / name for name in DOCUMENTS):
        document.write_text(with_parts(document.read_text(encoding="utf-8"), figures), encoding="utf-8")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """The figures by benchmark; if one fails the run ends, and the figures of earlier ones are kept."""
    figures: dict[str, Any] = {"machine": machine(PACKAGES), "quick": options.quick, "seconds": {}}
    for name in BENCHMARKS:
        file, began = options.out.with_name(f"{name}.json"), time.perf_counter()
        line = [sys.executable, Path(__file__).with_name(f"{name}.py"), "--out", file, *["--quick"] * options.quick]
        done = subprocess.run(line, stdout=subprocess.DEVNULL)
        if done.returncode:
            sys.exit(f"benchmarks/{name}.py failed with exit code {done.returncode}")
        figures[name] = json.loads(file.read_text(encoding="utf-8"))
        figures["seconds"][name] = round(time.perf_counter() - began)
        write_json(options.out, figures)
        print(f"{name}: {figures['seconds'][name]} s", file=sys.stderr, flush=True)
    return figures


if __name__ == "__main__":
    main()
