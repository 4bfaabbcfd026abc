"""The options that benchmarks of corpora have in common, and defaults for the quick and the full form of any."""

import argparse
from collections.abc import Mapping
from pathlib import Path


def corpus_parser(description: str | None, quick: Mapping[str, object]) -> argparse.ArgumentParser:
    """A parser of --quick, --clips, --rounds, --work and --out; description: the program's docstring."""
    parser = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help=f"less of everything: {quick}")
    parser.add_argument("--clips", type=int)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--work", type=Path, default=Path("build/benchmark"), help="folder of corpora and caches")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    return parser


def fill_defaults(options: argparse.Namespace, *, full: Mapping[str, object], quick: Mapping[str, object]) -> None:
    """Fill in the options that were not given."""
    for key, value in (quick if options.quick else full).items():
        if getattr(options, key) is None:
            setattr(options, key, value)
