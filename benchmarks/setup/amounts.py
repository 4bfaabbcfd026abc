"""Defaults of a benchmark's options, for its quick and its full form."""

import argparse
from collections.abc import Mapping


def fill_defaults(options: argparse.Namespace, *, full: Mapping[str, object], quick: Mapping[str, object]) -> None:
    """Fill in the options that were not given."""
    for key, value in (quick if options.quick else full).items():
        if getattr(options, key) is None:
            setattr(options, key, value)
