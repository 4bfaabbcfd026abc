"""The size of the project's own code: files, functions, chains of imports, and the functions that one clip passes.

    python benchmarks/code_size.py [--rev REV] [--hops] [--out FILE.json]

With --rev the same is measured of an older commit, unpacked into a temporary folder. --hops runs both stages on eight
clips of noise under a tracer (a minute or two) and lists every function from the corpus to the loss
(code_measures/hops.py says what counts).
"""

import argparse
import io
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from code_measures.hops import clip_hops
from code_measures.imports import longest_chain
from code_measures.sizes import STAGES, folder_rows, function_rows, readme_words
from reporting.report import table_lines, write_json

ROOT = Path(__file__).parents[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rev", help="a commit to measure instead of the working tree")
    parser.add_argument("--hops", action="store_true", help="trace one clip, too")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    options = parser.parse_args()
    with source_tree(options.rev) as tree:
        figures: dict[str, object] = {"folders": folder_rows(tree), "functions": function_rows(tree)}
        figures["imports"] = [
            {"stage": stage, "modules": len(chain), "longest_chain_of_imports": " > ".join(chain)}
            for stage, chain in ((stage, longest_chain(tree, stage)) for stage in STAGES)
        ]
        for rows in figures.values():
            print("\n".join([*table_lines(rows), ""]))
        figures["readme_words"] = readme_words(tree)
        print(f"README: {figures['readme_words']:,} words")
        if options.hops:
            figures["hops"] = hops = clip_hops(tree)
            parts = ", ".join(f"{len(names)} in the {stage}" for stage, names in hops.items())
            print(f"functions that one clip passes: {sum(map(len, hops.values()))}; {parts}")
            print("\n".join(f"  {stage}: {name}" for stage, names in hops.items() for name in names))
    if options.out:
        write_json(options.out, figures)


@contextmanager
def source_tree(rev: str | None) -> Iterator[Path]:
    """The working tree, or the files of a commit in a temporary folder."""
    if rev is None:
        yield ROOT
        return
    packed = subprocess.run(["git", "-C", str(ROOT), "archive", rev], stdout=subprocess.PIPE, check=False)
    if packed.returncode:
        raise SystemExit(f"--rev {rev}: git has no such commit; git log lists them")
    with tempfile.TemporaryDirectory(prefix="lockstep-rev-") as folder:
        with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as files:
            files.extractall(folder, filter="data")
        yield Path(folder)


if __name__ == "__main__":
    main()
