"""The options that benchmarks have in common, and defaults for the quick and the full form of any."""

import argparse
from collections.abc import Mapping
from pathlib import Path

Amounts = Mapping[str, object]


def program_parser(description: str | None, quick: Amounts) -> argparse.ArgumentParser:
    """A parser of --quick and --out; description: the program's docstring."""
    parser = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help=f"less of everything: {dict(quick)}")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    return parser


def corpus_parser(description: str | None, quick: Amounts) -> argparse.ArgumentParser:
    """The same with --clips, --rounds and --work, of programs that make a corpus."""
    parser = program_parser(description, quick)
    parser.add_argument("--clips", type=int, help="of the corpus")
    parser.add_argument("--rounds", type=int, help="turns of everything that is timed")
    parser.add_argument("--work", type=Path, default=Path("build/benchmark"), help="folder of corpora and caches")
    return parser


def parse(parser: argparse.ArgumentParser, *, full: Amounts, quick: Amounts) -> argparse.Namespace:
    """The options, with those that were not given, or that are none, filled in."""
    options = parser.parse_args()
    for key, value in (quick if options.quick else full).items():
        if getattr(options, key, None) is None:
            setattr(options, key, value)
    return options
