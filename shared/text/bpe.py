"""Byte-pair encoding by Hugging Face `tokenizers`: common pieces of words as one token (extra `bpe`).

A word (letters, marks, tones, apostrophes) carries the space before it; every other character stands alone, so that no
token spans two words.
"""

import json
from collections.abc import Iterable
from functools import lru_cache
from types import ModuleType
from typing import TYPE_CHECKING

from xtts.shared.errors import import_extra
from xtts.shared.text.readings import TONES
from xtts.shared.text.scripts import JOINERS

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Merges = tuple[tuple[str, str], ...]
"""Pairs of symbols that become one, the first learned first."""

_IN_WORDS = rf"\p{{L}}\p{{M}}{JOINERS}{TONES}\u00b7'"
_WORDS = f" ?[{_IN_WORDS}]+|[^{_IN_WORDS}]"
_LEAST_PAIR_COUNT = 2  # a pair seen once is a misprint


def train_merges(texts: Iterable[str], letters: tuple[str, ...], *, symbols: int) -> tuple[tuple[str, ...], Merges]:
    """Return the symbols to add to `letters`, in the order they were learned, and the merges that make them.

    texts: of `letters` only; how often their words occur matters, not their order. symbols: the total to reach.
    """
    tokenizer = _tokenizer()
    trainer = _library().trainers.BpeTrainer(
        vocab_size=symbols, initial_alphabet=list(letters), limit_alphabet=len(letters),
        min_frequency=_LEAST_PAIR_COUNT, special_tokens=[], show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    learned = sorted(model["vocab"].keys() - set(letters), key=model["vocab"].__getitem__)
    return tuple(learned), tuple((left, right) for left, right in model["merges"])


def encode_words(text: str, symbols: tuple[str, ...], merges: Merges) -> list[int]:
    """Return the ids of a text that holds only characters of `symbols`."""
    return list(_loaded(symbols, merges).encode(text).ids)


@lru_cache(maxsize=4)
def _loaded(symbols: tuple[str, ...], merges: Merges) -> "Tokenizer":
    return _tokenizer(vocab={symbol: i for i, symbol in enumerate(symbols)}, merges=list(merges))


def _tokenizer(**model: object) -> "Tokenizer":
    library = _library()
    tokenizer: Tokenizer = library.Tokenizer(library.models.BPE(**model))
    tokenizer.pre_tokenizer = library.pre_tokenizers.Split(library.Regex(_WORDS), "isolated")
    return tokenizer


def _library() -> ModuleType:
    return import_extra("tokenizers", "bpe", "text.tokenizer", "bpe needs Hugging Face tokenizers")
