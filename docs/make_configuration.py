"""Writes docs/configuration.md from the settings in shared/ and configs/: `python docs/make_configuration.py`."""

from pathlib import Path
from typing import Any

import yaml

from xtts.shared.config import Config
from xtts.shared.config_files import MODEL_SIZES, OVERLAYS, load_config, packaged_configs
from xtts.shared.feature_settings import feature_config

ROOT = Path(__file__).parents[1]
PAGE = Path(__file__).with_name("configuration.md")
COMMAND = "python docs/make_configuration.py"
FEATURES = ", ".join(f"`{name}`" for name in feature_config(load_config("tiny")))
HEAD = f"""# Configuration

<!-- Written by `{COMMAND}` from the settings in shared/ and configs/: change those, then run it again. -->

A run is described by one YAML file with the sections below. An unknown key, a wrong type or an impossible combination
is an error that names the key and the nearest known one. The resolved configuration is saved with every cache
(`cache.json`) and every run (`config.yaml`).

Later settings win over earlier ones:

1. the defaults below;
2. `--config NAME`, a file or a name in `configs/`; `model.size` sets the other `model` keys of that size;
3. every further `--config FILE`, an overlay such as `gpu/rtx4090`;
4. the short options: `--batch-size` (`training.batch_size`), `--max-text-length` and `--max-mel-frames` (`shapes`),
   `--model-size` (`model.size`), `--pad-to-fixed-length` or `--enable-static-shapes` (`shapes.pad_to_fixed_length`);
5. `--set section.key=value`, repeatable.

With make: `make train CONFIG=normal GPU=rtx4090 TRAIN_ARGS='--set training.seed=7'`.

The sections {FEATURES} decide the bytes of a cache: changing one of their
keys means rebuilding the cache, which does only the work that the change requires. Training takes the cache's value
of each that is left as the size has it. `data.filters` decides which clips are in a cache, for a build alone.
"""


def page() -> str:
    """The whole page."""
    schema = Config.model_json_schema()
    sections = _sections(schema, schema["$defs"])
    parts = [HEAD]
    for name, section in sections.items():
        lines = _model_table(section) if name == "model" else _table(section)
        parts.append("\n".join([f"## {name}", "", one_line(section["description"]), "", *lines, ""]))
    parts.append("\n".join(_files()))
    return "\n".join(parts)


def _sections(schema: dict[str, Any], kinds: dict[str, Any], prefix: str = "") -> dict[str, dict[str, Any]]:
    """The schema of each section and, after it, of those inside it; a `$ref` with a default stands beside it.

    A list of sections is one of them.
    """
    found = {}
    for name, part in schema["properties"].items():
        kinds_of = part.get("allOf") or part.get("anyOf") or [part.get("items", {})]
        reference = part.get("$ref") or kinds_of[0].get("$ref")
        if reference:
            section = kinds[reference.rpartition("/")[2]]
            found |= {prefix + name: section, **_sections(section, kinds, f"{prefix}{name}.")}
    return found


def _table(section: dict[str, Any]) -> list[str]:
    rows = [
        (f"`{key}`", type_text(field), default_text(field), one_line(field["description"]))
        for key, field in section["properties"].items()
        if "$ref" not in field  # a section in this one
    ]
    return _markdown(("key", "type", "default", "meaning and unit"), rows)


def _model_table(section: dict[str, Any]) -> list[str]:
    """Models have no defaults but sizes: a column each."""
    sizes = {size: load_config(size).model.model_dump() for size in MODEL_SIZES}
    rows = [
        (
            f"`{key}`",
            type_text(field),
            *(value_text(values[key]) for values in sizes.values()),
            one_line(field["description"]),
        )
        for key, field in section["properties"].items()
    ]
    return _markdown(("key", "type", *sizes, "meaning and unit"), rows)


def _files() -> list[str]:
    """What each file in configs/ sets besides the model."""
    rows = []
    for name in [*MODEL_SIZES, *sorted({*packaged_configs()} - {*MODEL_SIZES}), *packaged_configs(OVERLAYS)]:
        tree = yaml.safe_load((ROOT / "configs" / f"{name}.yaml").read_text(encoding="utf-8"))
        settings = [
            f"`{section}.{key}: {value}`"
            for section, values in tree.items()
            if section != "model"
            for key, value in values.items()
        ]
        rows.append((f"`{name}`", ", ".join(settings)))
    return ["## Files in configs/", "", "What they set besides `model`:", "", *_markdown(("name", "sets"), rows), ""]


def type_text(field: dict[str, Any]) -> str:
    """A JSON schema's type and bounds in words."""
    if "anyOf" in field:
        return " or ".join(type_text(part) for part in field["anyOf"])
    if "enum" in field:
        return " or ".join(f"`{value}`" for value in field["enum"])
    kind = {"boolean": "true or false", "array": "list"}.get(field["type"], field["type"])
    least, above = field.get("minimum"), field.get("exclusiveMinimum")
    most, below = field.get("maximum"), field.get("exclusiveMaximum")
    bounds = [
        f"{sign} {bound:g}" if abs(bound) < 1e4 else f"{sign} {bound:,}"
        for sign, bound in (("≥", least), (">", above), ("≤", most), ("<", below))
        if bound is not None
    ]
    return " ".join([kind, ", ".join(bounds)]).strip()


def default_text(field: dict[str, Any]) -> str:
    """The default of a key; empty where one must be given."""
    return value_text(field["default"]) if "default" in field else ""


def value_text(value: object) -> str:
    """A value as it stands in YAML."""
    text = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=10**6)
    return f"`{text.partition(chr(10))[0]}`"


def one_line(text: str) -> str:
    """A docstring as a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")


def _markdown(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    lines = [head, ("---",) * len(head), *rows]
    return [f"| {' | '.join(line)} |" for line in lines]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
