"""Byte-pair encoding learned from the corpus."""

import json
from dataclasses import replace

import pytest

from xtts.shared.errors import LockstepError
from xtts.shared.text.tokenizer import CHARACTERS, Tokenizer, learn_tokenizer, load_tokenizer

TEXTS = [
    "The other weather is there", "Whether the feather gathers there",
    "Another brother, rather than his mother", "There, then: the thing that they thought",
]


@pytest.fixture(scope="module")
def learned() -> Tokenizer:
    pytest.importorskip("tokenizers")
    return learn_tokenizer("bpe", {"en": TEXTS}, vocabulary=64, add_blank=False)


def test_common_pieces_are_one_token(learned):
    tokens = learned.encode("The OTHER \u65e5 weather!")
    assert learned.decode(tokens.ids) == "the other  weather!"
    assert [*tokens.left_out] == ["\u65e5"]
    assert len(tokens.ids) < len("the other  weather!")
    assert learned.symbols[: len(CHARACTERS)] == CHARACTERS
    assert len(CHARACTERS) < learned.size <= 64
    assert replace(learned, add_blank=True).encode("the").ids[1::2] == learned.encode("the").ids
    assert learned.symbols[len(CHARACTERS) :] == tuple(dict.fromkeys(map("".join, learned.merges))), "in any process"
    assert learn_tokenizer("bpe", {"en": TEXTS[::-1]}, vocabulary=64, add_blank=False) == learned


@pytest.mark.parametrize("merges", [[["t"]], 7])
def test_broken_merges_are_refused(learned, tmp_path, merges):
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps({**json.loads(learned.to_bytes()), "merges": merges}))
    with pytest.raises(LockstepError, match="unreadable tokenizer"):
        load_tokenizer(path)
