"""An exported folder: a voice's averaged weights as safetensors or an ONNX graph, and the files they need.

It may come from elsewhere: nothing is ever unpickled.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from xtts.shared.cache.cache_spec import TOKENIZER_FILE
from xtts.shared.config import Config
from xtts.shared.config_files import dump_config, load_config
from xtts.shared.errors import LockstepError
from xtts.trainer.stored.stored_json import read_json
from xtts.trainer.stored.voice_description import Voice, check_voice

WEIGHTS_FILE, GRAPH_FILE = "model.safetensors", "model.onnx"
CONFIG_FILE, VOICE_FILE, FACTS_FILE = "config.yaml", "voice.json", "facts.json"
FORMAT_VERSION = 2
FEWEST_HALVED = 64
"""Size of the smallest weight that an export stores as float16, if it stores any so."""
_ORIGIN = "a folder written by xtts-synth export"


def is_model_folder(path: Path) -> bool:
    """Whether a path is an exported folder, even one with files missing."""
    return any((path / name).is_file() for name in (WEIGHTS_FILE, GRAPH_FILE, VOICE_FILE))


def write_model_folder(folder: Path, *, config: Config, voice: Voice, weights: Mapping[str, np.ndarray]) -> None:
    """Write weights, configuration and voice into a folder that gets `tokenizer.json` too; weights: by weight path."""
    from safetensors.numpy import save

    (folder / WEIGHTS_FILE).write_bytes(save(dict(weights)))
    if not (folder / VOICE_FILE).is_file():  # a graph beside it may be fixed to a language
        write_description(folder, config=config, voice=voice)


def write_description(folder: Path, *, config: Config, voice: Voice, language: str | None = None) -> None:
    """Write configuration and voice; language: the only one spoken, if a graph is fixed to it."""
    (folder / CONFIG_FILE).write_text(dump_config(config), encoding="utf-8")
    entry = voice.model_dump(mode="json", exclude={"tokenizer"})
    fields = {"format_version": FORMAT_VERSION, "voice": entry, "language": language}
    (folder / VOICE_FILE).write_text(json.dumps(fields, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read_voice(folder: Path) -> tuple[Voice, list[str]]:
    """(the voice of a model folder, the languages that it speaks: all, or the one that its graph was fixed to).

    Raises `LockstepError` if something is missing or wrong.
    """
    path = folder / VOICE_FILE
    fields = read_json(path, _ORIGIN, FORMAT_VERSION)
    entry, language = fields.get("voice"), fields.get("language")
    if not isinstance(entry, dict):
        raise LockstepError(str(path), found="no `voice` entry")
    voice = check_voice({**entry, "tokenizer": read_json(folder / TOKENIZER_FILE, _ORIGIN)}, str(path))
    if language not in (None, *voice.languages):
        raise LockstepError(str(path), found=f"language {language!r}", expected=" or ".join(voice.languages))
    return voice, [language] if language else voice.languages


def read_facts(folder: Path) -> dict[str, Any]:
    """The facts of the model card; empty for a folder without a card."""
    path = folder / FACTS_FILE
    return read_json(path, _ORIGIN) if path.is_file() else {}


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
