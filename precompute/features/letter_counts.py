"""Letters of a corpus, and those without a token: counted clip by clip, checked before anything is written."""

import math
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from xtts.shared.cache.clip_index import UNKNOWN, IndexRow
from xtts.shared.errors import LockstepError
from xtts.shared.languages import LANGUAGES, find_language
from xtts.shared.text.alphabet import BY_READING, compose_jamo, fold_english, lower_case
from xtts.shared.text.pronunciation import INLINE_PHONEMES
from xtts.shared.text.scripts import is_letter, script_of

RARE = 3
"""A letter seen fewer times is listed: it may be a misprint, and no model learns its sound from so few."""
_NAMED, _LISTED = 5, 20
"""Largest number of characters in an error, and in a list."""
_OTHER_LANGUAGE = "--set text.language=CODE (ISO 639, such as de) if the corpus is in another language"

_SCRIPTS = frozenset(script for language in LANGUAGES.values() for script in language.scripts)
_FEW_CLIPS, _FEW_OF_ALL = 2, 1 / 3
"""At most this count and share of clips with such letters are odd lines or names; more show a wrong encoding."""
_FOREIGN_SHARE = 0.003
"""Share of letters foreign to the language that shows a wrong encoding: names bring fewer."""
_IPA_LETTERS = "".join(map(chr, range(0x250, 0x2E0)))
"""Unicode's letters of the International Phonetic Alphabet, stress and length."""

Fate = Literal["dropped", "folded", "rare"]


@dataclass(frozen=True, kw_only=True)
class CharacterCount:
    """A character of a corpus that users should check."""

    character: str
    name: str
    """Unicode name."""
    count: int
    example: str
    """Id of a clip with it."""
    fate: Fate
    """`dropped`: without a token; `folded`: lost its accent (English); `rare`: has a token, but hardly occurs."""
    is_letter: bool

    @property
    def shown(self) -> str:
        """Text such as `a 1,203x in clip X`; with the code point if the character cannot be printed."""
        character = self.character if self.character.isprintable() else f"U+{ord(self.character):04X}"
        return f"{character} {self.count:,}x in clip {self.example}"


@dataclass
class LetterCounts:
    """Counts of characters over the clips of one language."""

    language: str = "en"
    reads_accents: bool = False
    """Whether English keeps the letters with accents, as espeak-ng does."""
    letters: Counter[str] = field(default_factory=Counter)
    """Every letter of the corpus in lower case, with or without a token."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Characters without a token, letters or not."""
    folded: Counter[str] = field(default_factory=Counter)
    """Letters with the token of another: accents that English loses."""
    clips: int = 0
    foreign_clips: int = 0
    """Clips with letters that the language does not have."""
    examples: dict[str, str] = field(default_factory=dict)
    """Smallest id of a clip with each character."""

    def add(self, clip_id: str, text: str, left_out: Collection[str]) -> None:
        """Count one clip; `left_out`: its characters without a token, as in `Tokens`."""
        original, text = text, INLINE_PHONEMES.sub(" ", text)
        lowered, missing = lower_case(text, self.language), set(left_out)
        letters = Counter({c: count for c, count in Counter(lowered).items() if is_letter(c)})
        self.letters.update(letters)
        self.clips += 1
        self.foreign_clips += any(is_foreign(c, self.language) for c in letters)
        accented = set[str]()
        if self.language == "en" and not self.reads_accents:
            for letter in [c for c in letters if not unicodedata.normalize("NFKC", c).isascii()]:
                lost = letter in missing or bool(missing.intersection(fold_english(letter)))
                (self.left_out if lost else self.folded)[letter] += letters[letter]
                accented.add(letter)
            missing -= {c for letter in accented for c in (letter, *fold_english(letter))}
        for c in missing:
            self.left_out[c] += lowered.count(c) or compose_jamo(lowered).count(c) or original.count(c) or 1
        self._keep_examples(clip_id, accented | missing | letters.keys())

    def merge(self, other: "LetterCounts") -> None:
        """Add the counts of other clips in the same language."""
        self.letters.update(other.letters)
        self.clips += other.clips
        self.foreign_clips += other.foreign_clips
        self.left_out.update(other.left_out)
        self.folded.update(other.folded)
        for character, clip_id in other.examples.items():
            self._keep_examples(clip_id, [character])

    def _keep_examples(self, clip_id: str, characters: Iterable[str]) -> None:
        for character in characters:
            self.examples[character] = min(clip_id, self.examples.get(character, clip_id))

    @property
    def lost_share(self) -> float:
        """Share of the letters that are dropped or folded, 0 to 1."""
        return sum(letter.count for letter in self.lost_letters()) / max(1, self.letters.total())

    def lost_letters(self) -> list[CharacterCount]:
        """Return the letters that are dropped or folded."""
        return [row for row in self.characters() if row.is_letter and row.fate != "rare"]

    def characters(self) -> list[CharacterCount]:
        """Return what `build` and `report` show: by fate, the most frequent first, rare letters last."""
        lost = self.left_out.keys() | self.folded.keys()
        few = {} if self.language in ("en", *BY_READING) else {c: n for c, n in self.letters.items() if n < RARE}
        rare = Counter({c: n for c, n in few.items() if c not in lost})
        return [*self._rows(self.left_out, "dropped"), *self._rows(self.folded, "folded"), *self._rows(rare, "rare")]

    def _rows(self, counts: Counter[str], fate: Fate) -> Iterator[CharacterCount]:
        for character, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
            yield CharacterCount(
                character=character, name=unicodedata.name(character, f"U+{ord(character):04X}"), count=count,
                example=self.examples[character], fate=fate, is_letter=is_letter(character),
            )


def letter_lines(languages: Iterable[LetterCounts]) -> list[str]:
    """Return lines to print: one for each character that users should check."""
    lines = list[str]()
    for counts in languages:
        rows, share = counts.characters(), counts.lost_share
        if rows:
            lines.append(f"characters of language {counts.language} to check ({share:.2%} of its letters are lost):")
        for row in rows[:_LISTED]:
            printed = row.character if row.character.isprintable() else ""
            fate = "seen rarely" if row.fate == "rare" else row.fate
            lines.append(f"  {printed} {row.name}: {row.count:,}x {fate}, as in {row.example}".rstrip())
        if len(rows) > _LISTED:
            lines.append(f"  and {len(rows) - _LISTED} more")
    return lines


def check_encoding(counts: LetterCounts, max_share: float) -> None:
    """Raise a `LockstepError` if many letters are not those of the language, as after decoding with a wrong table.

    counts: of all clips in one language. max_share: `text.max_unknown_share`, if it is larger than `_FOREIGN_SHARE`.
    """
    language, total = find_language(counts.language), max(1, counts.letters.total())
    foreign = Counter({c: n for c, n in counts.letters.items() if is_foreign(c, counts.language)})
    share, few = foreign.total() / total, max(_FEW_CLIPS, _FEW_OF_ALL * counts.clips)
    if counts.foreign_clips <= few or share <= max(_FOREIGN_SHARE, max_share):
        return
    named = ", ".join(f"{c} {n:,}x in clip {counts.examples[c]}" for c, n in foreign.most_common(_NAMED))
    own = " ".join(sorted(language.letters)[:_NAMED])
    raise LockstepError(
        "text.language", found=f"{share:.1%} of the letters are not {language.name} ({named})",
        expected=" or ".join(map(_script_name, language.scripts)) + (f" letters, such as {own}" if own else " letters"),
        fix=f"export the list again as UTF-8, or {_OTHER_LANGUAGE}, or "
        f"--set text.max_unknown_share={math.ceil(share * 1000) / 1000:g} to keep them",
        exit_code=1,
    )


@lru_cache(maxsize=65_536)
def is_foreign(letter: str, code: str) -> bool:
    """Whether a language does not have a letter: one of another script, or with another accent; a to z never are."""
    language, script = find_language(code), script_of(letter)
    if letter.isascii() or not language.scripts:
        return False
    if script == "LATIN":
        return bool(language.letters) and letter not in language.letters
    return script in _SCRIPTS and script not in language.scripts


def check_letters(counts: LetterCounts, max_share: float, *, kind: str = "characters") -> None:
    """Raise a `LockstepError` if a corpus is not in its language, or loses more than `max_share` of its letters.

    counts: of all clips in one language. max_share, kind: `text.max_unknown_share` and `text.tokenizer`.
    """
    script, language = _main_script(counts.letters), find_language(counts.language)
    if script and language.scripts and script not in language.scripts:
        raise LockstepError(
            "text.language", found=f"{language.name} ({language.code}), but most letters are {_script_name(script)}",
            expected=" or ".join(map(_script_name, language.scripts)), fix=_OTHER_LANGUAGE, exit_code=1,
        )
    if counts.lost_share <= max_share:
        return
    lost = counts.lost_letters()
    named = ", ".join(letter.shown for letter in lost[:_NAMED]) + (", ..." if len(lost) > _NAMED else "")
    script = _script_name(_main_script(Counter({letter.character: letter.count for letter in lost})))
    reason = "would be spelled by espeak-ng" if kind == "phonemes" else "are not in the symbol table"
    if counts.language == "en" and counts.folded.total() > counts.left_out.total():
        reason = "are not English and would lose their accents"
    raise LockstepError(
        "text.language", found=f"{counts.lost_share:.2%} of the letters {reason} ({script}: {named})",
        expected=f"at most {max_share:.2%} with text.language={counts.language}", fix=_fix(counts, kind), exit_code=1,
    )


def _fix(counts: LetterCounts, kind: str) -> str:
    tolerate = f"--set text.max_unknown_share={math.ceil(counts.lost_share * 1000) / 1000:g} to lose them"
    lost = counts.left_out + counts.folded
    if 2 * sum(lost[c] for c in _IPA_LETTERS) > lost.total():
        return f"write phonemes as [[...]] and build with --set text.tokenizer=phonemes, or {tolerate}"
    other = "--set text.tokenizer=characters" if kind == "phonemes" and counts.language != "en" else ""
    return ", or ".join(filter(None, [_OTHER_LANGUAGE, other, tolerate]))


def letters_of(rows: Iterable[IndexRow], language: str, kind: str) -> list[LetterCounts]:
    """Count the letters of each language, sorted by code.

    language: of clips without their own; kind: `text.tokenizer`.
    """
    counts = dict[str, LetterCounts]()
    for row in rows:
        if row.token_length != UNKNOWN:
            code = row.clip.language or language
            counts.setdefault(code, LetterCounts(code, kind == "phonemes")).add(
                row.clip.id, row.clip.text, row.left_out
            )
    return [counts[code] for code in sorted(counts)]


def _script_name(script: str) -> str:
    return {"CJK": "Chinese characters", "": "no script of its own"}.get(script, script.capitalize())


def _main_script(letters: Counter[str]) -> str:
    """Return the script of most letters; empty without letters."""
    scripts = Counter[str]()
    for letter, count in letters.items():
        scripts[script_of(letter)] += count
    del scripts[""]
    return max(scripts, key=lambda script: (scripts[script], script), default="")
