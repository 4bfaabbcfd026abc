"""The sections of a configuration that decide the bytes of a cache: how they are stored, read back and compared."""

from collections.abc import Mapping

from pydantic import ValidationError

from xtts.shared.config import (
    AudioConfig,
    Config,
    FilterConfig,
    ShapesConfig,
    ShardsConfig,
    SplitConfig,
    TextConfig,
)
from xtts.shared.config_types import Section

_KINDS: dict[str, type[Section]] = {
    "audio": AudioConfig,
    "text": TextConfig,
    "shapes": ShapesConfig,
    "shards": ShardsConfig,
    "split": SplitConfig,
}
FEATURE_SECTIONS = tuple(_KINDS)
"""Sections that decide the bytes of a cache."""
FILTERS = "data.filters"
"""The section that decides which clips are in a cache. Training need not agree with it; stored if a filter is set."""


def check_features(features: Mapping[str, object]) -> None:
    """Raise a `ValueError` when the sections of a stored configuration are not what this version writes."""
    for section in (*FEATURE_SECTIONS, FILTERS):
        kind, stored = _KINDS.get(section, FilterConfig), features.get(section, {} if section == FILTERS else None)
        try:
            kind.model_validate(stored)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, (section, *first["loc"])))
            raise ValueError(f"features.{where}: {str(first['msg']).lower()}") from None


def setting_differences(
    stored: Mapping[str, object], wanted: Mapping[str, Mapping[str, object]]
) -> list[tuple[str, object, object]]:
    """(section.field, as stored, as wanted) of every feature setting that differs, by section as in `wanted`."""
    before = with_defaults(stored)
    return [
        (f"{section}.{field}", before[section][field], value)
        for section, fields in wanted.items()
        for field, value in fields.items()
        if before[section][field] != value
    ]


NO_FEATURES = ("text.max_unknown_share", "shapes.max_reject_fraction")
"""Keys of feature sections that decide whether a cache is built, but nothing of what is in it."""
_LATER = ("text.language", "text.max_unknown_share")
"""Keys of a later version: stored where they differ from their defaults, so that older caches keep their bytes."""


def feature_differences(
    stored: Mapping[str, object], wanted: Mapping[str, Mapping[str, object]]
) -> list[tuple[str, object, object]]:
    """`setting_differences` without those of `NO_FEATURES`: what makes it another cache."""
    return [difference for difference in setting_differences(stored, wanted) if difference[0] not in NO_FEATURES]


def stored_features(config: Config) -> dict[str, dict[str, object]]:
    """`feature_config` as a cache stores it."""
    features, usual = feature_config(config), with_defaults({name: {} for name in FEATURE_SECTIONS})
    for section, field in (key.split(".") for key in _LATER):
        if features[section][field] == usual[section][field]:
            del features[section][field]
    filters = {name: limit for name, limit in filter_config(config)[FILTERS].items() if limit is not None}
    return {**features, FILTERS: filters} if filters else features


def with_defaults(features: Mapping[str, object]) -> dict[str, dict[str, object]]:
    """Stored feature settings with the defaults of fields that did not exist when they were stored."""
    stored = {name: kind.model_validate(features.get(name)) for name, kind in _KINDS.items()}
    filters = FilterConfig.model_validate(features.get(FILTERS, {}))
    return {name: section.model_dump(mode="json") for name, section in {**stored, FILTERS: filters}.items()}


def filter_config(config: Config) -> dict[str, dict[str, object]]:
    """The filters as JSON-ready values, null where they are off."""
    return {FILTERS: config.data.filters.model_dump(mode="json")}


def feature_config(config: Config) -> dict[str, dict[str, object]]:
    """The part of the configuration that decides the bytes of a cache, as JSON-ready values."""
    return {section: getattr(config, section).model_dump(mode="json") for section in FEATURE_SECTIONS}


def follow_text(config: Config, stored: Mapping[str, object]) -> Config:
    """The configuration with a cache's text settings where its own are the defaults: training meets tokens alone.

    A tokenizer of `auto` is the cache's.
    """
    usual = TextConfig().model_dump(mode="json")
    built = with_defaults(stored)["text"]
    taken = {
        name: built[name]
        for name, value in config.text.model_dump(mode="json").items()
        if value == usual[name] or (name, value) == ("tokenizer", "auto")
    }
    return config.model_copy(update={"text": config.text.model_copy(update=taken)})
