"""The sections of a configuration that decide the bytes of a cache: how they are stored, read back and compared."""

from collections.abc import Mapping

from pydantic import ValidationError

from xtts.shared.config import AudioConfig, Config, FilterConfig, ShapesConfig, ShardsConfig, SplitConfig, TextConfig
from xtts.shared.config_files import load_config
from xtts.shared.model_config import ConfigSection

Features = Mapping[str, Mapping[str, object]]
"""Section to its fields, as JSON-ready values."""
FILTERS = "data.filters"
"""The section that decides which clips are in a cache. Training need not agree with it."""
_KINDS: dict[str, type[ConfigSection]] = {
    "audio": AudioConfig, "text": TextConfig, "shapes": ShapesConfig, "shards": ShardsConfig, "split": SplitConfig,
    FILTERS: FilterConfig,
}


def check_features(features: Features) -> None:
    """Raise `ValueError` if the sections of a stored configuration are not what this version writes."""
    for section, kind in _KINDS.items():
        stored = features.get(section)
        try:
            complete = kind.model_validate(stored).model_dump(mode="json")
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join(map(str, (section, *first["loc"])))
            raise ValueError(f"features.{key}: {str(first['msg']).lower()}") from None
        if complete != stored:
            raise ValueError(f"features.{section}: fields differ from this version's")


def setting_differences(stored: Features, wanted: Features) -> list[tuple[str, object, object]]:
    """(section.field, stored value, wanted value) of every setting that differs, in the order of `wanted`."""
    return [
        (f"{section}.{field}", stored[section][field], value)
        for section, fields in wanted.items()
        for field, value in fields.items()
        if stored[section][field] != value
    ]


NO_FEATURES = ("text.max_unknown_share", "shapes.max_reject_fraction")
"""Keys that decide whether a cache is built, but not what is in it."""


def feature_differences(stored: Features, wanted: Features) -> list[tuple[str, object, object]]:
    """`setting_differences` without `NO_FEATURES`: those that make the caches differ."""
    return [difference for difference in setting_differences(stored, wanted) if difference[0] not in NO_FEATURES]


def stored_features(config: Config) -> dict[str, dict[str, object]]:
    """The settings that a cache stores: `feature_config`, and the filters with null for those that are off."""
    return {**feature_config(config), FILTERS: config.data.filters.model_dump(mode="json")}


def feature_config(config: Config) -> dict[str, dict[str, object]]:
    """The sections of the configuration on which a cache and training on it must agree."""
    return {name: getattr(config, name).model_dump(mode="json") for name in _KINDS if name != FILTERS}


def follow_cache(config: Config, stored: Features) -> Config:
    """Replace settings that are those of the model's size, and a tokenizer of `auto`, by those of the cache."""
    followed, usual = {}, feature_config(load_config(config.model.size))
    for section, wanted in feature_config(config).items():
        left_open = [name for name, value in wanted.items() if value in (usual[section][name], "auto")]
        update = {name: stored[section][name] for name in left_open}
        followed[section] = _KINDS[section].model_validate({**wanted, **update})
    return config.model_copy(update=followed)
