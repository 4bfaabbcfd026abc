"""The device that the steps run on: name, capability, memory, utilisation."""

import os
from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from xtts.shared.config import Config

_BFLOAT16_SINCE = (8, 0)
"""Lowest compute capability that multiplies in bfloat16."""
_UNCOMPILED_SINCE = (12, 0)
"""Lowest compute capability for which TensorFlow 2.21 cannot compile: its PTX is too old."""
_BY_JAX = "train by JAX: pip install 'lockstep-tts[jax-cuda]', then --runtime jax"


class Card(NamedTuple):
    """An NVIDIA GPU."""

    capability: tuple[int, int]
    """Compute capability, (8, 0) for an A100."""
    name: str

    def __str__(self) -> str:
        return f"{self.name} (compute capability {self.capability[0]}.{self.capability[1]})"


def device_name() -> str:
    """Name of the device that the steps run on."""
    gpus = tf.config.list_physical_devices("GPU")
    if not gpus:
        return f"CPU, {os.cpu_count()} cores"
    return ", ".join(str(tf.config.experimental.get_device_details(gpu).get("device_name", gpu.name)) for gpu in gpus)


def step_device() -> str:
    """TensorFlow's name of the device that the steps run on if it is a single one."""
    return "GPU:0" if tf.config.list_logical_devices("GPU") else "CPU:0"


def weakest_card() -> Card | None:
    """Return the card of the lowest compute capability, which limits a run on all of them; None without a card."""
    details = [tf.config.experimental.get_device_details(gpu) for gpu in tf.config.list_physical_devices("GPU")]
    cards = [
        Card(card["compute_capability"], card.get("device_name", "GPU"))
        for card in details if "compute_capability" in card
    ]
    return min(cards, default=None)


def suited_to(card: Card | None, config: Config, say: Callable[[str], None]) -> Config:
    """Return a configuration that a card can train with: float32 if it lacks bfloat16. say: receives notes."""
    if card is None:
        return config
    if card.capability >= _UNCOMPILED_SINCE:
        say(f"{card}: XLA in TensorFlow's wheels does not compile for it (tensorflow#111958); {_BY_JAX}")
    if config.training.mixed_precision == "float32" or card.capability >= _BFLOAT16_SINCE:
        return config
    say(f"{card}: bfloat16 needs compute capability 8.0, so training.mixed_precision is float32")
    training = config.training.model_copy(update={"mixed_precision": "float32"})
    return config.model_copy(update={"training": training})
