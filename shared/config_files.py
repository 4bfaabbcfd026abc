"""Read the configuration: YAML files, `--set section.key=value` and short-hand flags give one `Config`."""

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from xtts.shared.config import Config
from xtts.shared.errors import LockstepError, read_text

Tree = dict[str, Any]
Layer = tuple[str, Tree]
"""(source of the settings, their sections); `data.filters` may be named as a section, too."""

MODEL_SIZES = ("tiny", "small", "normal", "big")
"""Files in configs/ with all fields of `model`."""
OVERLAYS = "gpu/"
"""Folder in configs/ with overlays for kinds of GPU."""


class _Loader(yaml.SafeLoader):
    """Safe YAML in which 1e-4 is a number, `no` a word (as in YAML 1.2), and a repeated key an error."""


def _mapping(loader: _Loader, node: yaml.MappingNode) -> Tree:
    seen: Tree = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        if key in seen:
            raise yaml.constructor.ConstructorError(None, None, f"key {key!r} occurs twice", key_node.start_mark)
        seen[key] = loader.construct_object(value_node, deep=True)
    return seen


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)
_FLOAT = re.compile(r"^[-+]?\d+(?:\.\d*)?[eE][-+]?\d+$")
_Loader.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+0123456789"))
for _letter in "yYnNoO":  # yes, no, on, off
    _resolvers = _Loader.yaml_implicit_resolvers[_letter]
    _Loader.yaml_implicit_resolvers[_letter] = [(tag, _) for tag, _ in _resolvers if tag != "tag:yaml.org,2002:bool"]


def parse_yaml(text: str, source: str) -> Any:  # noqa: ANN401 - YAML is any value
    """Parse YAML; raises `LockstepError` with the line if it is malformed or has a key twice."""
    try:
        return yaml.load(text, Loader=_Loader)
    except (yaml.YAMLError, ValueError, TypeError) as error:  # an impossible date; a list as a key
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or str(error)
        raise LockstepError(f"{source}{line}", found=f"not readable as YAML ({problem})") from None


def packaged_configs(folder: str = "") -> list[str]:
    """Names that `--config NAME` takes without a path; with folder "gpu/" the overlays in it."""
    entries = (resources.files("xtts.configs") / folder).iterdir()
    return sorted(folder + entry.name.removesuffix(".yaml") for entry in entries if entry.name.endswith(".yaml"))


def read_config_file(name: str) -> Layer:
    """Read a YAML file given by path, or by name if it is in configs/."""
    path, packaged = Path(name), [*packaged_configs(), *packaged_configs(OVERLAYS)]
    if name in packaged:
        source, text = f"configs/{name}.yaml", (resources.files("xtts.configs") / f"{name}.yaml").read_text("utf-8")
    else:
        source, text = str(path), read_text(path, expected=f"a YAML file or one of {', '.join(packaged)}")
    tree = parse_yaml(text, source) or {}
    if not isinstance(tree, dict) or not all(isinstance(v, dict) for v in tree.values()):
        raise LockstepError(
            source, found="not sections of settings", expected="`section:` with `key: value` lines below"
        )
    return source, tree


def _assignment(text: str) -> Layer:
    key, equals, value = text.partition("=")
    section, _, field = key.strip().rpartition(".")
    if not (equals and section and field):
        raise LockstepError(f"--set {text}", found="not an assignment", expected="section.key=value")
    return f"--set {text}", {section: {field: parse_yaml(value, f"--set {text}")}}


def known_keys(model: type[BaseModel] = Config, prefix: str = "") -> list[str]:
    """Every `section.key` of the configuration."""
    keys = []
    for name, field in model.model_fields.items():
        of = field.annotation
        if isinstance(of, type) and issubclass(of, BaseModel):
            keys += known_keys(of, f"{prefix}{name}.")
        else:
            keys.append(prefix + name)
    return keys


def _nested(layer: Layer) -> Layer:
    """A layer with the keys of a section that is named `data.filters` inside `data`."""
    source, sections = layer
    nested: Tree = {}
    for path, values in sections.items():
        section, _, inner = path.partition(".")
        nested.setdefault(section, {}).update({inner: values} if inner else values)
    return source, nested


_COMMAND_LINE = ("flag for ", "--set ")
"""Prefixes of the source of layers from the command line."""


def _merge(layers: Sequence[Layer]) -> Tree:
    """Merge layers key by key; later ones win.

    A layer with `model.size` first sets all fields of that size; one with `training.steps` removes the epochs of a
    file, which would decide the steps. Epochs of the command line decide them in any order.
    """
    command_line = [sections for source, sections in layers if source.startswith(_COMMAND_LINE)]
    epochs_asked = any("epochs" in sections.get("training", {}) for sections in command_line)
    merged: Tree = {}
    for source, sections in layers:
        for section, values in sections.items():
            target = merged.setdefault(section, {})
            if section == "model" and "size" in values:
                if values["size"] not in MODEL_SIZES:
                    expected = "one of " + ", ".join(MODEL_SIZES)
                    raise LockstepError(source, found=f"model.size {values['size']!r}", expected=expected)
                target.update(read_config_file(values["size"])[1]["model"])
            if section == "training" and "steps" in values and not epochs_asked:
                target.pop("epochs", None)
            for field, value in values.items():  # a section in a section is merged key by key, too
                is_section = isinstance(value, dict) and isinstance(target.get(field), dict)
                target[field] = {**target[field], **value} if is_section else value
    return merged


def _explain(error: ValidationError, layers: list[Layer]) -> LockstepError:
    first = error.errors()[0]
    names = [str(name) for name in first["loc"]]
    key = ".".join(names)
    section, field = names[0], names[1] if len(names) > 1 else None
    sources = [
        name for name, sections in layers if section in sections and (field is None or field in sections[section])
    ]
    source = sources[-1] if sources else layers[0][0]
    if first["type"] == "extra_forbidden":
        near = difflib.get_close_matches(key, [*known_keys(), *Config.model_fields], n=1, cutoff=0.5)
        near = near or [known_key for known_key in known_keys() if known_key.rpartition(".")[2] == names[-1]]
        fix = f"did you mean {near[0]}?" if near else "docs/configuration.md lists all keys"
        return LockstepError(source, found=f"unknown key {key}", fix=fix)
    message = first["msg"].removeprefix("Value error, ") + ", true or false" * (first["type"] == "bool_type")
    setting = key if isinstance(first["input"], dict) else f"{key} = {first['input']!r}"
    return LockstepError(source, found=f"{setting}: {message[0].lower()}{message[1:]}")


def load_config(
    name: str, *, overlays: Iterable[str] = (), flags: Mapping[str, object] | None = None,
    assignments: Iterable[str] = (),
) -> Config:
    """Resolve a configuration: file, then overlay files, then flags (`section.key` to value), then `--set`."""
    layers = [("the default size", {"model": {"size": "tiny"}}), *map(read_config_file, (name, *overlays))]
    for key, value in (flags or {}).items():
        section, _, field = key.rpartition(".")
        layers.append((f"flag for {key}", {section: {field: value}}))
    layers += [_assignment(text) for text in assignments]
    return validate_config(layers)


def validate_config(layers: list[Layer]) -> Config:
    """Merge layers into a `Config`; raises `LockstepError` with the first problem."""
    layers = [_nested(layer) for layer in layers]
    try:
        return Config.model_validate(_merge(layers))
    except ValidationError as error:
        raise _explain(error, layers) from None


def dump_config(config: Config) -> str:
    """Dump the resolved configuration as YAML."""
    return yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True)
