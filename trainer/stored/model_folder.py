"""The weights of an exported folder, as safetensors, and the files beside them.

It may come from elsewhere: nothing is ever unpickled.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from xtts.shared.config import Config
from xtts.shared.config_files import dump_config, load_config
from xtts.shared.errors import LockstepError, read_json
from xtts.trainer.speech.voice_source import is_voice_folder

WEIGHTS_FILE, CONFIG_FILE, FACTS_FILE = "model.safetensors", "config.yaml", "facts.json"
FEWEST_HALVED = 64
"""Size of the smallest weight that an export stores as float16, if it stores any so."""


def is_model_folder(path: Path) -> bool:
    """Whether a path is an exported folder, even one with files missing."""
    return is_voice_folder(path) or (path / WEIGHTS_FILE).is_file()


def write_weights(folder: Path, weights: Mapping[str, np.ndarray]) -> None:
    """Write weights, by weight path."""
    from safetensors.numpy import save

    (folder / WEIGHTS_FILE).write_bytes(save(dict(weights)))


def write_config(folder: Path, config: Config) -> None:
    """Write the configuration of an exported model."""
    (folder / CONFIG_FILE).write_text(dump_config(config), encoding="utf-8")


def read_facts(folder: Path) -> dict[str, Any]:
    """The facts of the model card; empty for a folder without a card."""
    path = folder / FACTS_FILE
    return read_json(path, "a folder written by xtts-synth export") if path.is_file() else {}


def read_config(folder: Path) -> Config:
    """The configuration of a model folder; `LockstepError` for one that cannot be read."""
    return load_config(str(folder / CONFIG_FILE))


def read_weights(folder: Path) -> dict[str, np.ndarray]:
    """The averaged weights by path, float32; `LockstepError` for a damaged file or weights that are not finite."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    path = folder / WEIGHTS_FILE
    try:
        weights = {name: values.astype(np.float32) for name, values in load_file(path).items()}
    except (OSError, SafetensorError) as error:
        raise LockstepError(
            str(path), found=f"not a usable safetensors file ({str(error).splitlines()[0]})", fix="download it again"
        ) from None
    for name, values in weights.items():
        if not np.isfinite(values).all():
            raise LockstepError(str(path), found=f"weight {name} is not finite")
    return weights
