"""What a card cannot do is reported, and not attempted: by facts of cards, without a card."""

import pytest
import tensorflow as tf

from xtts.shared.config_files import load_config
from xtts.trainer.system.device import Card, suited_to, weakest_card

V100, A100 = Card((7, 0), "V100"), Card((8, 0), "A100")


def test_a_card_that_tensorflow_cannot_compile_for_is_named_and_no_other():
    config, lines = load_config("tiny"), []
    for capability in ((6, 1), (7, 5), (8, 9), (9, 0), (10, 0)):
        assert suited_to(Card(capability, "card"), config, lines.append) == config
    assert lines == []
    suited_to(Card((12, 0), "RTX 5090"), config, lines.append)
    assert "XLA in TensorFlow's wheels does not compile for it" in lines[0]
    assert "pip install 'lockstep-tts[jax-cuda]', then --runtime jax" in lines[0]


@pytest.fixture
def cards(monkeypatch):
    """`cards(name={...details...})`: the cards that TensorFlow sees."""

    def see(**details):
        monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [*details] if kind == "GPU" else [])
        monkeypatch.setattr(tf.config.experimental, "get_device_details", details.__getitem__)

    return see


def test_the_weakest_of_several_cards_counts(cards):
    cards(
        a={"device_name": "A100", "compute_capability": (8, 0)}, b={"device_name": "V100", "compute_capability": (7, 0)}
    )
    assert weakest_card() == V100
    cards(other={"device_name": "of another maker"})
    assert weakest_card() is None
    cards()
    assert weakest_card() is None


@pytest.mark.parametrize(("card", "precision", "said"), [
    (V100, "float32", [f"{V100}: bfloat16 needs compute capability 8.0, so training.mixed_precision is float32"]),
    (A100, "bfloat16", []), (None, "bfloat16", []),
])
def test_bfloat16_becomes_float32_where_the_card_has_none(cards, card, precision, said):
    cards()
    config, lines = load_config("normal"), []
    suited = suited_to(card, config, lines.append)
    assert suited.training.mixed_precision == precision
    assert lines == said
    assert suited.training.model_copy(update={"mixed_precision": "bfloat16"}) == config.training
    asked = load_config("tiny")
    assert suited_to(V100, asked, lines.append) == asked, "nothing to change"
    assert lines == said
