"""Text to tokens: one documented symbol table, the same in features, training and synthesis.

Ids: 0 pads, 1 is the blank of `add_blank`, 2 is the space, then punctuation, then a to z or the IPA letters.
Byte-pair encoding puts the pieces that it learned from the corpus behind a to z.
"""

import json
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from xtts.shared.errors import LockstepError, repair_command
from xtts.shared.text.bpe import Merges, check_merges, encode_words, train_merges
from xtts.shared.text.phonemes import IPA, phonemise

PAD, BLANK = "<pad>", "<blank>"
_COMMON: tuple[str, ...] = (PAD, BLANK, " ", *"!'\"(),-.:;?")
CHARACTERS: tuple[str, ...] = (*_COMMON, *"abcdefghijklmnopqrstuvwxyz")
PHONEMES: tuple[str, ...] = (*_COMMON, *IPA)
_SYMBOLS = {"characters": CHARACTERS, "phonemes": PHONEMES}

_TYPOGRAPHY = str.maketrans(
    {
        "\u2018": "'", "\u2019": "'", "\u201a": "'", "\u00b4": "'", "`": "'",
        "\u201c": '"', "\u201d": '"', "\u201e": '"', "\u00ab": '"', "\u00bb": '"',
        "\u2013": "-", "\u2014": "-", "\u2212": "-", "[": "(", "]": ")",
        "\u00df": "ss", "\u00e6": "ae", "\u0153": "oe", "\u00f8": "o", "\u0142": "l",
    }
)  # fmt: skip


def normalise(text: str) -> str:
    """Lower case, plain quotes and dashes, accents folded (e-acute to e), white space collapsed."""
    text = unicodedata.normalize("NFKC", text).lower().translate(_TYPOGRAPHY)
    text = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    return " ".join(text.split())


@dataclass(frozen=True, kw_only=True)
class Tokens:
    """Token ids of one text, and the characters that the table does not hold (left out, reported)."""

    ids: list[int]
    unknown: str


@dataclass(frozen=True, kw_only=True)
class Tokenizer:
    """Maps text to ids by a symbol table; `add_blank` puts blank around every symbol (2n+1 tokens)."""

    kind: str
    symbols: tuple[str, ...]
    add_blank: bool
    merges: Merges = ()
    """Of byte-pair encoding."""

    @property
    def size(self) -> int:
        """Number of ids, the pad included."""
        return len(self.symbols)

    def encode(self, text: str) -> Tokens:
        """Ids of `text`; empty when no character of it is known."""
        table = {symbol: i for i, symbol in enumerate(self.symbols)}
        cleaned = phonemise(text) if self.kind == "phonemes" else normalise(text)
        known = "".join(c for c in cleaned if c in table)
        ids = encode_words(known, self.symbols, self.merges) if self.kind == "bpe" else [table[c] for c in known]
        unknown = "".join(sorted({c for c in cleaned if c not in table}))
        if all(self.symbols[i] == " " for i in ids):
            ids = []
        if self.add_blank and ids:
            blank = table[BLANK]
            ids = [blank, *(i for symbol in ids for i in (symbol, blank))]
        return Tokens(ids=ids, unknown=unknown)

    def decode(self, ids: list[int]) -> str:
        """Readable text of ids, without pads and blanks."""
        return "".join(self.symbols[i] for i in ids if self.symbols[i] not in (PAD, BLANK))

    def to_json(self) -> dict[str, object]:
        """What `tokenizer.json` holds."""
        merges = {"merges": [list(pair) for pair in self.merges]} if self.kind == "bpe" else {}
        return {"kind": self.kind, "add_blank": self.add_blank, "symbols": list(self.symbols), **merges}


def build_tokenizer(kind: str, *, add_blank: bool) -> Tokenizer:
    """The tokenizer that `text.tokenizer` names, where no corpus is needed to make it."""
    if kind not in _SYMBOLS:
        raise LockstepError("text.tokenizer", found=repr(kind), expected=" or ".join(_SYMBOLS))
    return Tokenizer(kind=kind, symbols=_SYMBOLS[kind], add_blank=add_blank)


def train_tokenizer(texts: Iterable[str], *, vocabulary: int, add_blank: bool) -> Tokenizer:
    """Byte-pair encoding of at most `vocabulary` ids, learned from these texts."""
    letters = CHARACTERS[2:]
    known = ("".join(c for c in normalise(text) if c in letters) for text in texts)
    learned, merges = train_merges(known, letters, symbols=vocabulary - 2)
    return Tokenizer(kind="bpe", symbols=(*CHARACTERS, *learned), add_blank=add_blank, merges=merges)


def load_tokenizer(path: Path) -> Tokenizer:
    """Read `tokenizer.json`; a `LockstepError` names what is wrong with it."""
    fix = repair_command(path.parent)
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        merges = tuple((str(left), str(right)) for left, right in fields.get("merges", ()))
        symbols = tuple(map(str, fields["symbols"]))
        check_merges(symbols, merges)
        return Tokenizer(
            kind=str(fields["kind"]), symbols=symbols, add_blank=bool(fields["add_blank"]), merges=merges
        )  # fmt: skip
    except FileNotFoundError:
        raise LockstepError(str(path), found="no such file", expected="the cache's tokenizer", fix=fix) from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise LockstepError(str(path), found=f"unreadable tokenizer ({error})", fix=fix) from None
