"""Text to tokens: one documented symbol table, the same in features, training and synthesis.

Ids: 0 pads, 1 is the blank of `add_blank`, 2 and 3 are the start and the end of every text, 4 is the space, then
punctuation, then a to z or the IPA letters.
Languages other than English append the letters that their texts are written with (`shared/text/alphabet.py`) in the
order of their code points. Byte-pair encoding puts the pieces that it learned from the corpus behind the letters.
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

from xtts.shared.errors import LockstepError, repair_command
from xtts.shared.languages import find_language
from xtts.shared.text.alphabet import PUNCTUATION, alphabet, composed, written
from xtts.shared.text.bpe import Merges, check_merges, encode_words, train_merges
from xtts.shared.text.phonemes import IPA, phonemise, spelled_letters, unread_signs
from xtts.shared.text.pronunciation import GIVEN, Lexicon, pronounced
from xtts.shared.text.scripts import is_letter, is_sign

PAD, BLANK, START, END = SPECIAL = ("<pad>", "<blank>", "<start>", "<end>")
"""Symbols that are not written; a text begins and ends with the last two, in the silent edges of its clip."""
_COMMON: tuple[str, ...] = (*SPECIAL, " ", *PUNCTUATION)
CHARACTERS: tuple[str, ...] = (*_COMMON, *"abcdefghijklmnopqrstuvwxyz")
PHONEMES: tuple[str, ...] = (*_COMMON, *IPA)
_SYMBOLS = {"characters": CHARACTERS, "phonemes": PHONEMES}
_ENGLISH = ("en",)
_APART = re.compile("(?<![ \0]) *\0[ \0]*(?P<end>[!),.:;?]|$)?")
"""Signs without a symbol, each a zero byte, with the spaces around them."""


@dataclass(frozen=True, kw_only=True)
class Tokens:
    """Token ids of one text, and what of it has no token."""

    ids: list[int]
    """Empty when the text has not one known letter."""
    left_out: Mapping[str, int]
    """Characters that the table does not hold, and how often; what espeak-ng would spell or name among them."""

    @property
    def unknown(self) -> str:
        """The characters left out, sorted."""
        return "".join(sorted(self.left_out))


@dataclass(frozen=True, kw_only=True)
class Tokenizer:
    """Maps text to ids by a symbol table, from start to end; `add_blank` puts a blank around every symbol."""

    kind: str
    symbols: tuple[str, ...]
    add_blank: bool
    merges: Merges = ()
    """Of byte-pair encoding."""
    languages: tuple[str, ...] = _ENGLISH
    """ISO 639 codes of the texts that it was made for; the first is that of texts which do not say."""
    lexicon: Lexicon = field(default_factory=dict)
    """How words are read."""

    @property
    def size(self) -> int:
        """Number of ids, the pad included."""
        return len(self.symbols)

    def encode(self, text: str, language: str | None = None, where: str = "text") -> Tokens:
        """Ids of `text`, a text in `language`; empty when no letter of it is known.

        A `LockstepError` where a library that reads the language is missing, or there are phonemes for a tokenizer of
        letters; `where` says in which text.
        """
        language, table, text = language or self.languages[0], _ids(self.symbols), pronounced(text, self.lexicon)
        if self.kind != "phonemes" and (given := GIVEN.search(text)):
            expected = f"letters, which the tokenizer {self.kind} reads"
            fix = "spell the word as it sounds, or build with --set text.tokenizer=phonemes"
            raise LockstepError(where, found=f"phonemes, {given[0]}", expected=expected, fix=fix)
        cleaned = phonemise(text, language) if self.kind == "phonemes" else written(text, language)
        left_out = Counter(c for c in cleaned if c not in table)
        if self.kind == "phonemes":
            words = GIVEN.sub(" ", text)
            spelled = "" if words.isascii() else spelled_letters(words, language)
            left_out.update(c for c in unicodedata.normalize("NFC", words).lower() if c in spelled)
            left_out.update(unread_signs(words, language))
        known = _with_symbols(cleaned, table)
        if not any(map(is_letter, known)):
            return Tokens(ids=[], left_out=left_out)
        ids = encode_words(known, self.symbols, self.merges) if self.kind == "bpe" else [table[c] for c in known]
        ids = [table[START], *ids, table[END]]
        if self.add_blank:
            blank = table[BLANK]
            ids = [blank, *(i for symbol in ids for i in (symbol, blank))]
        return Tokens(ids=ids, left_out=left_out)

    def decode(self, ids: list[int]) -> str:
        """Readable text of ids, without `SPECIAL` symbols."""
        return composed("".join(self.symbols[i] for i in ids if self.symbols[i] not in SPECIAL))

    def to_json(self) -> dict[str, object]:
        """The fields of `tokenizer.json`."""
        return {
            "kind": self.kind,
            "add_blank": self.add_blank,
            "languages": list(self.languages),
            "symbols": list(self.symbols),
            "merges": [list(pair) for pair in self.merges],
            **({"lexicon": dict(self.lexicon)} if self.lexicon else {}),
        }

    def to_bytes(self) -> bytes:
        """The content of `tokenizer.json`."""
        return (json.dumps(self.to_json(), indent=1, ensure_ascii=False) + "\n").encode()

    @property
    def sha256(self) -> str:
        """Digest of `to_bytes`."""
        return hashlib.sha256(self.to_bytes()).hexdigest()


def _with_symbols(text: str, table: Container[str]) -> str:
    """What of a text has symbols: other letters and digits are left out, other signs part words, as a space does."""
    if all(c in table for c in text):
        return text
    known = "".join(c if c in table else "\0" * is_sign(c) for c in text)
    return _APART.sub(lambda found: found["end"] or " " * bool(found.start() and found["end"] is None), known)


@lru_cache(maxsize=4)
def _ids(symbols: tuple[str, ...]) -> dict[str, int]:
    return {symbol: i for i, symbol in enumerate(symbols)}


def build_tokenizer(kind: str, *, add_blank: bool) -> Tokenizer:
    """The English tokenizer that `text.tokenizer` names, where no corpus is needed to make it."""
    if kind not in _SYMBOLS:
        raise LockstepError("text.tokenizer", found=repr(kind), expected=" or ".join(_SYMBOLS))
    return Tokenizer(kind=kind, symbols=_SYMBOLS[kind], add_blank=add_blank)


def learn_tokenizer(
    kind: str,
    texts: Mapping[str, Iterable[str]],
    *,
    add_blank: bool,
    vocabulary: int = 512,
    previous: Tokenizer | None = None,
) -> Tokenizer:
    """The tokenizer for texts of each language; English has a fixed alphabet, the others what they are written in.

    The result does not depend on the order of the texts.

    kind: `characters`, `phonemes` or `bpe`. texts: by ISO 639 code, the main language first, each read once or twice;
    with `previous` those that are new since are enough. vocabulary: most ids of `bpe`. previous: the tokenizer of an
    earlier build with the same settings: its symbols keep their ids, none is removed, and new letters are appended.

    A `LockstepError` where a code is malformed, a library is missing, espeak-ng cannot speak a language, or there are
    more letters than `vocabulary`.
    """
    languages = tuple(find_language(code).code for code in texts)
    if previous is not None:
        languages = (*previous.languages, *(code for code in languages if code not in previous.languages))
    if kind != "bpe" and languages == _ENGLISH:
        return build_tokenizer(kind, add_blank=add_blank)
    first = PHONEMES if kind == "phonemes" else CHARACTERS if languages == _ENGLISH else _COMMON
    known = first if previous is None else previous.symbols
    new = {symbol for code, some in texts.items() for symbol in _spelling(kind, some, code)} - set(known)
    symbols = (*known, *sorted(new))
    if previous is not None:
        return replace(previous, symbols=symbols, languages=languages)
    made = Tokenizer(kind=kind, symbols=symbols, add_blank=add_blank, languages=languages)
    return _with_pieces(made, texts, vocabulary) if kind == "bpe" else made


def _spelling(kind: str, texts: Iterable[str], language: str) -> set[str]:
    """Symbols beside the common ones that texts of one language need."""
    if kind == "phonemes":
        spoken = (phonemise(text, language) for text in texts) if language != "en" else ()
        return {symbol for one in spoken for symbol in one}
    return set(CHARACTERS[len(_COMMON) :]) if language == "en" else alphabet(texts, language)


def _with_pieces(letters: Tokenizer, texts: Mapping[str, Iterable[str]], vocabulary: int) -> Tokenizer:
    """The tokenizer with the pieces of words that byte-pair encoding learns."""
    if letters.size > vocabulary:
        found = f"{letters.size} letters and signs in the corpus, more than text.bpe_vocabulary ({vocabulary})"
        raise LockstepError("text.bpe_vocabulary", found=found, fix=f"--set text.bpe_vocabulary={2 * letters.size}")
    symbols = letters.symbols[len(SPECIAL) :]
    table = set(symbols)
    known = (_with_symbols(written(text, code), table) for code, some in texts.items() for text in some)
    learned, merges = train_merges(known, symbols, symbols=vocabulary - len(SPECIAL))
    return replace(letters, symbols=(*letters.symbols, *learned), merges=merges)


def load_tokenizer(path: Path) -> Tokenizer:
    """Read `tokenizer.json`; a `LockstepError` names what is wrong with it."""
    fix = repair_command(path.parent)
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        merges = tuple((str(left), str(right)) for left, right in fields["merges"])
        symbols, languages = tuple(map(str, fields["symbols"])), tuple(map(str, fields["languages"]))
        lexicon = {str(word): str(reading) for word, reading in fields.get("lexicon", {}).items()}
        check_merges(symbols, merges)
        if not languages:
            raise ValueError("no languages")
        return Tokenizer(
            kind=str(fields["kind"]), symbols=symbols, add_blank=bool(fields["add_blank"]), merges=merges,
            languages=languages, lexicon=lexicon,
        )  # fmt: skip
    except FileNotFoundError:
        raise LockstepError(str(path), found="no such file", expected="the cache's tokenizer", fix=fix) from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise LockstepError(str(path), found=f"unreadable tokenizer ({error})", fix=fix) from None
