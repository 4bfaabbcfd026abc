"""Text to tokens by a symbol table, the same for features, training and synthesis.

Ids: 0 pads, 1 is the blank of `add_blank`, 2 and 3 are the start and the end of every text, 4 is the space, then
punctuation, then a to z or the IPA letters.
Languages other than English append the letters that their texts are written with (`shared/text/alphabet.py`) in the
order of their code points. Byte-pair encoding appends the pieces that it learned from the corpus to the letters.
"""

import hashlib
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from xtts.shared.errors import LockstepError, repair_command
from xtts.shared.languages import find_language
from xtts.shared.text.alphabet import PUNCTUATION, alphabet, compose_jamo, spell
from xtts.shared.text.bpe import Merges, encode_words, train_merges
from xtts.shared.text.phonemes import IPA, phonemise, spelled_letters, unread_signs
from xtts.shared.text.pronunciation import INLINE_PHONEMES, Lexicon, apply_lexicon
from xtts.shared.text.scripts import is_letter, is_sign

PAD, BLANK, START, END = SPECIAL = ("<pad>", "<blank>", "<start>", "<end>")
"""Symbols without a character; the last two begin and end every text, in the silent edges of its clip."""
_COMMON: tuple[str, ...] = (*SPECIAL, " ", *PUNCTUATION)
CHARACTERS: tuple[str, ...] = (*_COMMON, *"abcdefghijklmnopqrstuvwxyz")
PHONEMES: tuple[str, ...] = (*_COMMON, *IPA)
_ENGLISH = ("en",)
_UNKNOWN_SIGNS = re.compile("(?<![ \0]) *\0[ \0]*(?P<end>[!),.:;?]|$)?")
"""Signs without a symbol, each a zero byte, with the spaces around them."""


@dataclass(frozen=True, kw_only=True)
class Tokens:
    """Token ids of a text, and its characters without a token."""

    ids: list[int]
    """Token ids; empty if no letter of the text has a token."""
    left_out: Mapping[str, int]
    """Characters without a token and their counts, including those that espeak-ng would spell or name."""


@dataclass(frozen=True, kw_only=True)
class Tokenizer:
    """Symbol table that maps a text to ids, from start to end; `add_blank` puts a blank around every symbol."""

    kind: str
    symbols: Annotated[tuple[str, ...], Field(min_length=1)]
    add_blank: bool
    merges: Merges
    """Merges of byte-pair encoding."""
    languages: Annotated[tuple[str, ...], Field(min_length=1)]
    """ISO 639 codes of the texts that it was made for; the first is the default."""
    lexicon: Lexicon = field(default_factory=dict)
    """Readings of words."""

    def __post_init__(self) -> None:
        """Refuse a table without the special symbols."""
        if self.symbols[: len(SPECIAL)] != SPECIAL:
            raise ValueError(f"its symbols do not begin with {' '.join(SPECIAL)}: an earlier version made it")

    @property
    def size(self) -> int:
        """Number of ids, the pad included."""
        return len(self.symbols)

    def encode(self, text: str, language: str | None = None, location: str = "text") -> Tokens:
        """Encode a text in `language`, by default the first.

        Raises `LockstepError` at `location` if a library that reads the language is missing, or a tokenizer of letters
        meets phonemes.
        """
        language, table, text = language or self.languages[0], _ids(self.symbols), apply_lexicon(text, self.lexicon)
        if self.kind != "phonemes" and (given := INLINE_PHONEMES.search(text)):
            expected = f"letters, which the tokenizer {self.kind} reads"
            fix = "spell the word as it sounds, or build with --set text.tokenizer=phonemes"
            raise LockstepError(location, found=f"phonemes, {given[0]}", expected=expected, fix=fix)
        cleaned = phonemise(text, language) if self.kind == "phonemes" else spell(text, language)
        left_out = Counter(c for c in cleaned if c not in table)
        if self.kind == "phonemes":
            words = INLINE_PHONEMES.sub(" ", text)
            spelled = "" if words.isascii() else spelled_letters(words, language)
            left_out.update(c for c in unicodedata.normalize("NFC", words).lower() if c in spelled)
            left_out.update(unread_signs(words, language))
        cleaned = _only_symbols(cleaned, table)
        if not any(map(is_letter, cleaned)):
            return Tokens(ids=[], left_out=left_out)
        ids = encode_words(cleaned, self.symbols, self.merges) if self.kind == "bpe" else [table[c] for c in cleaned]
        ids = [table[START], *ids, table[END]]
        if self.add_blank:
            blank = table[BLANK]
            ids = [blank, *(i for symbol in ids for i in (symbol, blank))]
        return Tokens(ids=ids, left_out=left_out)

    def decode(self, ids: list[int]) -> str:
        """Return the readable text of ids, without `SPECIAL` symbols."""
        return compose_jamo("".join(self.symbols[i] for i in ids if self.symbols[i] not in SPECIAL))

    def to_bytes(self) -> bytes:
        """Return the content of `tokenizer.json`."""
        names = ("kind", "add_blank", "languages", "symbols", "merges", *(["lexicon"] * bool(self.lexicon)))
        fields = {name: getattr(self, name) for name in names}
        return (json.dumps(fields, indent=1, ensure_ascii=False) + "\n").encode()

    @property
    def sha256(self) -> str:
        """Digest of `to_bytes()`, in hexadecimal."""
        return hashlib.sha256(self.to_bytes()).hexdigest()


_READER = TypeAdapter(Tokenizer)


def _only_symbols(text: str, table: Container[str]) -> str:
    """Drop the letters and digits of a text that are not in the table; other signs separate words, as a space does."""
    if all(c in table for c in text):
        return text
    marked = "".join(c if c in table else "\0" * is_sign(c) for c in text)
    return _UNKNOWN_SIGNS.sub(lambda match: match["end"] or " " * bool(match.start() and match["end"] is None), marked)


@lru_cache(maxsize=4)
def _ids(symbols: tuple[str, ...]) -> dict[str, int]:
    return {symbol: i for i, symbol in enumerate(symbols)}


def build_tokenizer(kind: str, *, add_blank: bool) -> Tokenizer:
    """Return the English tokenizer of a kind that needs no corpus: `characters` or `phonemes`."""
    symbols = PHONEMES if kind == "phonemes" else CHARACTERS
    return Tokenizer(kind=kind, symbols=symbols, add_blank=add_blank, merges=(), languages=_ENGLISH)


def learn_tokenizer(
    kind: str, texts: Mapping[str, Iterable[str]], *, add_blank: bool, vocabulary: int = 512,
    previous: Tokenizer | None = None,
) -> Tokenizer:
    """Return a tokenizer for texts in several languages: English has a fixed alphabet, others that of their texts.

    The order of the texts does not matter.

    kind: `characters`, `phonemes` or `bpe`. texts: by ISO 639 code, the main language first, each read once or twice;
    with `previous` only new texts are needed. vocabulary: most ids of `bpe`. previous: the tokenizer of the previous
    build with the same settings: its symbols keep their ids, none is removed, and new letters are appended.

    Raises `LockstepError` if a code is malformed, a library is missing, espeak-ng cannot speak a language, or there are
    more letters than `vocabulary`.
    """
    languages = tuple(find_language(code).code for code in texts)
    if previous is not None:
        languages = (*previous.languages, *(code for code in languages if code not in previous.languages))
    if kind != "bpe" and languages == _ENGLISH:
        return build_tokenizer(kind, add_blank=add_blank)
    fixed = PHONEMES if kind == "phonemes" else CHARACTERS if languages == _ENGLISH else _COMMON
    symbols = fixed if previous is None else previous.symbols
    used = set[str]().union(*(_symbols_of(kind, own, code) for code, own in texts.items()))
    symbols = (*symbols, *sorted(used - set(symbols)))
    if previous is not None:
        return replace(previous, symbols=symbols, languages=languages)
    tokenizer = Tokenizer(kind=kind, symbols=symbols, add_blank=add_blank, merges=(), languages=languages)
    return _with_pieces(tokenizer, texts, vocabulary) if kind == "bpe" else tokenizer


def _symbols_of(kind: str, texts: Iterable[str], language: str) -> set[str]:
    """Return the symbols besides the common ones that texts of one language need."""
    if kind == "phonemes":
        return set() if language == "en" else {symbol for text in texts for symbol in phonemise(text, language)}
    return set(CHARACTERS[len(_COMMON) :]) if language == "en" else alphabet(texts, language)


def _with_pieces(letters: Tokenizer, texts: Mapping[str, Iterable[str]], vocabulary: int) -> Tokenizer:
    """Add the pieces of words that byte-pair encoding learns from the texts."""
    if letters.size > vocabulary:
        found = f"{letters.size} letters and signs in the corpus, more than text.bpe_vocabulary ({vocabulary})"
        raise LockstepError("text.bpe_vocabulary", found=found, fix=f"--set text.bpe_vocabulary={2 * letters.size}")
    symbols = letters.symbols[len(SPECIAL) :]
    table = set(symbols)
    spelled = (_only_symbols(spell(text, code), table) for code, own in texts.items() for text in own)
    learned, merges = train_merges(spelled, symbols, symbols=vocabulary - len(SPECIAL))
    return replace(letters, symbols=(*letters.symbols, *learned), merges=merges)


def load_tokenizer(path: Path) -> Tokenizer:
    """Read `tokenizer.json`; raises `LockstepError` if it is missing or malformed."""
    fix = repair_command(path.parent)
    try:
        return _READER.validate_json(path.read_bytes())
    except FileNotFoundError:
        raise LockstepError(str(path), found="no such file", expected="the cache's tokenizer", fix=fix) from None
    except ValidationError as error:
        raise LockstepError(str(path), found=f"unreadable tokenizer ({error.errors()[0]['msg']})", fix=fix) from None
