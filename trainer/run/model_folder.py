"""A folder that passes a voice on: averaged weights as safetensors or an ONNX graph, and what they need.

Such a folder comes from elsewhere: every file is checked before anything is made of it, and nothing is ever unpickled.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from xtts.shared.cache.cache_spec import TOKENIZER_FILE
from xtts.shared.config import Config
from xtts.shared.config_files import dump_config, load_config
from xtts.shared.errors import LockstepError
from xtts.shared.model_config import ModelConfig
from xtts.trainer.evaluation.voice_description import Voice, check_voice

WEIGHTS_FILE, GRAPH_FILE = "model.safetensors", "model.onnx"
CONFIG_FILE, VOICE_FILE = "config.yaml", "voice.json"
FORMAT_VERSION = 1

_TYPES = ("F32", "F16")
_LARGEST_CONFIG_BYTES = 2**16
_LARGEST_JSON_BYTES = 2**26
_DEEPEST_CONFIG = 4
"""Sections of settings; `model.decoder_levels` is a list of sections inside one."""


def is_model_folder(path: Path) -> bool:
    """Whether a path is an exported folder, be it with files missing."""
    return any((path / name).is_file() for name in (WEIGHTS_FILE, GRAPH_FILE, VOICE_FILE))


def write_model_folder(folder: Path, *, config: Config, voice: Voice, weights: Mapping[str, np.ndarray]) -> None:
    """Write weights, configuration and voice into a folder that gets `tokenizer.json` too; weights: by path."""
    from safetensors.numpy import save

    (folder / WEIGHTS_FILE).write_bytes(save(dict(weights)))
    if not (folder / VOICE_FILE).is_file():  # a graph beside it may be fixed to a language
        write_description(folder, config=config, voice=voice)


def write_description(folder: Path, *, config: Config, voice: Voice, language: str | None = None) -> None:
    """Write configuration and voice; language: the only one of several that is spoken."""
    (folder / CONFIG_FILE).write_text(dump_config(config), encoding="utf-8")
    described = voice.model_dump(mode="json", exclude={"tokenizer"})
    fields = {"format_version": FORMAT_VERSION, "voice": described, "language": language}
    (folder / VOICE_FILE).write_text(json.dumps(fields, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read_voice(folder: Path) -> Voice:
    """The voice of a model folder; `LockstepError` if something is missing or wrong."""
    path = folder / VOICE_FILE
    described = _voice_fields(path).get("voice")
    if not isinstance(described, dict):
        raise LockstepError(str(path), found="no `voice` entry")
    return check_voice({**described, "tokenizer": _read_json(folder / TOKENIZER_FILE)}, str(path))


def read_languages(folder: Path, voice: Voice) -> list[str]:
    """The languages that a model folder speaks: those of its voice, or the one that its graph was fixed to."""
    language = _voice_fields(folder / VOICE_FILE).get("language")
    if language is None:
        return voice.languages
    if language not in voice.languages:
        expected = " or ".join(voice.languages)
        raise LockstepError(str(folder / VOICE_FILE), found=f"language {language!r}", expected=expected)
    return [language]


def _voice_fields(path: Path) -> dict[str, Any]:
    fields = _read_json(path)
    if fields.get("format_version") != FORMAT_VERSION:
        found = f"format version {fields.get('format_version')!r}"
        raise LockstepError(str(path), found=found, expected=str(FORMAT_VERSION))
    return fields


def _read_json(path: Path) -> dict[str, Any]:
    try:
        fields = json.loads(_read_text(path, _LARGEST_JSON_BYTES))
    except (ValueError, RecursionError) as error:
        raise LockstepError(str(path), found=f"cannot be read ({error})") from None
    if not isinstance(fields, dict):
        raise LockstepError(str(path), found="no JSON object")
    return fields


def _read_text(path: Path, most_bytes: int) -> str:
    try:
        size = path.stat().st_size
        if size > most_bytes:
            raise LockstepError(str(path), found=f"{size:,} bytes", expected=f"at most {most_bytes:,}")
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise LockstepError(str(path), found="no such file", expected="a folder written by xtts-synth export") from None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise LockstepError(str(path), found=f"cannot be read ({reason})") from None


def read_config(folder: Path) -> Config:
    """The configuration of a model folder; `LockstepError` for anything but plain sections of settings."""
    path = folder / CONFIG_FILE
    text, depth = _read_text(path, _LARGEST_CONFIG_BYTES), 0
    try:
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if isinstance(event, yaml.AliasEvent) or depth > _DEEPEST_CONFIG:
                raise LockstepError(str(path), found="nested values or aliases", expected="sections of settings")
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise LockstepError(str(path), found=f"not readable as YAML (line {mark.line + 1 if mark else 1})") from None
    return load_config(str(path))


def read_weights(folder: Path, model: ModelConfig) -> dict[str, np.ndarray]:
    """The averaged weights by path, float32.

    Raises:
        LockstepError: The file is damaged or hostile, has weights of another type or that are not finite, or is too
            small for the model that `config.yaml` describes. All but the finite is known from the header alone.
    """
    from safetensors import SafetensorError, safe_open

    path = folder / WEIGHTS_FILE
    try:
        with safe_open(path, framework="numpy") as stored:
            names, held = list(stored.keys()), 0
            for name in names:
                part = stored.get_slice(name)
                if part.get_dtype() not in _TYPES:
                    expected = " or ".join(_TYPES)
                    raise LockstepError(str(path), found=f"weight {name} of type {part.get_dtype()}", expected=expected)
                held += int(np.prod(part.get_shape(), dtype=np.float64))
            if held < (least := least_parameters(model)):
                expected = f"at least {least:,} for the model of {CONFIG_FILE}"
                raise LockstepError(str(path), found=f"{held:,} values", expected=expected)
            weights = {name: stored.get_tensor(name).astype(np.float32) for name in names}
    except (OSError, SafetensorError) as error:
        raise LockstepError(
            str(path), found=f"not a usable safetensors file ({str(error).splitlines()[0]})", fix="download it again"
        ) from None
    for name, values in weights.items():
        if not np.isfinite(values).all():
            raise LockstepError(str(path), found=f"weight {name} is not finite")
    return weights


def least_parameters(model: ModelConfig) -> int:
    """Fewer parameters than these no model of these sizes has: a square matrix for every block.

    A hostile configuration is refused by it before a model is made.
    """
    layers = [
        (model.text_width, model.text_blocks), (model.decoder_width, model.decoder_blocks),
        (model.duration_width, model.duration_layers - 1),
        *((level.width, level.blocks) for level in model.decoder_levels),
    ]  # fmt: skip
    return sum(width**2 * number for width, number in layers)
