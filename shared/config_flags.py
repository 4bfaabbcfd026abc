"""Command-line options that describe a configuration, the same for every command that takes one."""

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:  # pydantic alone would cost half of the time that --help may take
    from xtts.shared.config import Config

DEFAULT_CONFIG, DEFAULT_CACHE = "tiny", "features"

_OPTIONS = (
    click.option("--config", metavar="FILE", multiple=True,
                 help=f"Settings: a size (tiny, small, normal, big) or a YAML file; if repeated, later ones win.  "
                 f"[default: {DEFAULT_CONFIG}]"),
    click.option("--set", "assignments", metavar="KEY=VALUE", multiple=True,
                 help="One setting, such as --set shapes.buckets=8; may be repeated. docs/configuration.md lists all."),
    click.option("--batch-size", "training__batch_size", type=int, metavar="CLIPS",
                 help="Clips per training step; fewer need less memory (training.batch_size).  [default: by size]"),
    click.option("--max-text-length", "shapes__max_text_length", type=int, metavar="TOKENS",
                 help="Longest text that a build takes; longer ones are rejected, not cut.  [default: no limit]"),
    click.option("--max-mel-frames", "shapes__max_mel_frames", type=int, metavar="FRAMES",
                 help="Longest clip that a build takes; longer ones are rejected, not cut.  [default: no limit]"),
    click.option("--model-size", "model__size", metavar="SIZE",
                 help="Size of the network; --config SIZE sets batches and shapes too.  [default: that of --config]"),
    click.option(
        "--pad-to-fixed-length/--no-pad-to-fixed-length", "--enable-static-shapes/--no-enable-static-shapes",
        "shapes__pad_to_fixed_length", default=None,
        help="Padding to a few fixed shapes; off is the slow baseline, for comparison.  [default: on]",
    ),
)
"""Options; those of older trainers are named after the key that they set, with `__` for the dot."""


def config_options(command: Callable[..., None]) -> Callable[..., None]:
    """Decorate a click command so that it receives `config`, `assignments` and `flags`, the arguments of `resolve`."""

    @wraps(command)
    def with_flags(*args: Any, **options: Any) -> None:  # noqa: ANN401 - click passes whatever was declared
        values = {name.replace("__", "."): options.pop(name) for name in list(options) if "__" in name}
        flags = {key: value for key, value in values.items() if value is not None}
        command(*args, flags=flags, **options)

    decorated: Callable[..., None] = with_flags
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated


def config_names(config: str | PathLike[str] | Sequence[str | PathLike[str]]) -> tuple[str, ...]:
    """Return the values of `--config` for one name or path, or for several."""
    return tuple(fspath(name) for name in ((config,) if isinstance(config, str | PathLike) else config))


def resolve(config: Sequence[str], assignments: Sequence[str], flags: Mapping[str, object]) -> "Config":
    """Load the configuration that the options describe: the first file, overlay files, flags, then assignments."""
    from xtts.shared.config_files import load_config

    base, *overlays = config or (DEFAULT_CONFIG,)
    return load_config(base, overlays=overlays, flags=flags, assignments=assignments)
