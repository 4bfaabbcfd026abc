"""The sections of a configuration that decide the bytes of a cache: how they are stored, read back and compared."""

from collections.abc import Mapping

from pydantic import ValidationError

from xtts.shared.config import AudioConfig, Config, FilterConfig, ShapesConfig, ShardsConfig, SplitConfig, TextConfig
from xtts.shared.model_config import ConfigSection

Features = Mapping[str, Mapping[str, object]]
"""ConfigSection to its fields, as JSON-ready values."""
FILTERS = "data.filters"
"""The section that decides which clips are in a cache. Training need not agree with it."""
_KINDS: dict[str, type[ConfigSection]] = {
    "audio": AudioConfig,
    "text": TextConfig,
    "shapes": ShapesConfig,
    "shards": ShardsConfig,
    "split": SplitConfig,
    FILTERS: FilterConfig,
}


def check_features(features: Features) -> None:
    """Raise a `ValueError` when the sections of a stored configuration are not what this version writes."""
    for section, kind in _KINDS.items():
        stored = features.get(section)
        try:
            whole = kind.model_validate(stored).model_dump(mode="json")
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, (section, *first["loc"])))
            raise ValueError(f"features.{where}: {str(first['msg']).lower()}") from None
        if whole != stored:
            raise ValueError(f"features.{section}: other fields than this version writes")


def setting_differences(stored: Features, wanted: Features) -> list[tuple[str, object, object]]:
    """(section.field, as stored, as wanted) of every feature setting that differs, by section as in `wanted`."""
    return [
        (f"{section}.{field}", stored[section][field], value)
        for section, fields in wanted.items()
        for field, value in fields.items()
        if stored[section][field] != value
    ]


NO_FEATURES = ("text.max_unknown_share", "shapes.max_reject_fraction")
"""Keys of feature sections that decide whether a cache is built, but nothing of what is in it."""


def feature_differences(stored: Features, wanted: Features) -> list[tuple[str, object, object]]:
    """`setting_differences` without those of `NO_FEATURES`: what makes it another cache."""
    return [difference for difference in setting_differences(stored, wanted) if difference[0] not in NO_FEATURES]


def stored_features(config: Config) -> dict[str, dict[str, object]]:
    """The settings that a cache stores: `feature_config` and the filters, null where they are off."""
    return {**feature_config(config), FILTERS: config.data.filters.model_dump(mode="json")}


def feature_config(config: Config) -> dict[str, dict[str, object]]:
    """The part of the configuration on which a cache and training on it must agree."""
    return {name: getattr(config, name).model_dump(mode="json") for name in _KINDS if name != FILTERS}


def follow_text(config: Config, stored: Features) -> Config:
    """The configuration with a cache's text settings where its own are the defaults: training meets tokens alone.

    A tokenizer of `auto` is the cache's.
    """
    usual = TextConfig().model_dump(mode="json")
    taken = {
        name: stored["text"][name]
        for name, value in config.text.model_dump(mode="json").items()
        if value == usual[name] or (name, value) == ("tokenizer", "auto")
    }
    return config.model_copy(update={"text": config.text.model_copy(update=taken)})
