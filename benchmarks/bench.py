"""Every benchmark of the project, one after another: one table with the ratios first, one JSON, and the pictures.

    python benchmarks/bench.py [--quick] [--only precompute training step_cost] [--out build/benchmark/results.json]
    python benchmarks/bench.py --readme [--out benchmarks/results.json]

The first form measures, and leaves FILE.json, FILE.md (the table, then every benchmark's own) and the pictures as SVG
beside it. The second measures nothing: it writes README.md's performance section and docs/*.svg from such a file.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

from pictures import draw
from report import machine, table_lines, write_json
from summary import summarise

ROOT = Path(__file__).parents[1]
BENCHMARKS = ("precompute", "training", "step_cost")
PACKAGES = ("lockstep-tts", "tensorflow", "keras", "numpy", "scipy", "librosa", "torch", "lhotse")
BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"


def main() -> None:
    options = parse_arguments()
    if options.readme:
        figures = json.loads(options.out.read_text(encoding="utf-8"))
        draw(figures, ROOT / "docs")
        readme = ROOT / "README.md"
        readme.write_text(with_section(readme.read_text(encoding="utf-8"), figures), encoding="utf-8")
        return
    options.out.parent.mkdir(parents=True, exist_ok=True)
    figures, pages = measure(options)
    write_json(options.out, figures)
    page = "\n".join([section(figures), "", *(f"## {name}\n\n{text}" for name, text in pages.items())])
    options.out.with_suffix(".md").write_text(page, encoding="utf-8")
    draw(figures, options.out.parent)
    print(section(figures))
    print(f"\nall figures: {options.out}, {options.out.with_suffix('.md')}; pictures: {options.out.parent}/*.svg")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="less of everything: indicative, under ten minutes")
    parser.add_argument("--only", nargs="+", choices=BENCHMARKS, default=BENCHMARKS, metavar="NAME")
    parser.add_argument("--readme", action="store_true", help="write the README's section from --out, measure nothing")
    parser.add_argument("--out", type=Path, help="the JSON file")
    options = parser.parse_args()
    if options.out is None:
        options.out = ROOT / ("benchmarks/results.json" if options.readme else "build/benchmark/results.json")
    return options


def measure(options: argparse.Namespace) -> tuple[dict[str, object], dict[str, str]]:
    """(figures by benchmark, what each printed); a benchmark that fails ends it all."""
    figures: dict[str, object] = {"machine": machine(PACKAGES), "quick": options.quick}
    if options.only != BENCHMARKS and options.out.exists():  # the others' figures stay
        figures = json.loads(options.out.read_text(encoding="utf-8")) | figures
    pages = {}
    for name in options.only:
        file, began = options.out.with_name(f"{name}.json"), time.perf_counter()
        command = [sys.executable, str(Path(__file__).with_name(f"{name}.py")), "--out", str(file)]
        done = subprocess.run([*command, *["--quick"] * options.quick], stdout=subprocess.PIPE, text=True)
        if done.returncode:
            sys.exit(f"benchmarks/{name}.py failed with exit code {done.returncode}")
        pages[name], figures[name] = done.stdout, json.loads(file.read_text(encoding="utf-8"))
        print(f"{name}: {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
    return figures, pages


def section(figures: dict[str, object]) -> str:
    """The table of every ratio, below a line that tells the machine."""
    described = figures["machine"]
    assert isinstance(described, dict)
    quick = "; a quick run: few batches, indicative only" if figures["quick"] else ""
    head = f"{described['processor']}, {described['cores']} cores, Python {described['python']}{quick}."
    return "\n".join([head, "", *table_lines(summarise(figures))])


def with_section(readme: str, figures: dict[str, object]) -> str:
    """The README with the section between its marks made anew."""
    before, _, rest = readme.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{section(figures)}\n{END}{after}"


if __name__ == "__main__":
    main()
