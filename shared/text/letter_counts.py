"""What a corpus' letters are, and which have no token: counted clip by clip, judged before anything is written."""

import math
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from xtts.shared.errors import LockstepError
from xtts.shared.languages import find_language
from xtts.shared.text.alphabet import BY_READING, composed, fold_english, small_letters
from xtts.shared.text.pronunciation import GIVEN
from xtts.shared.text.scripts import is_letter, main_script, script_name, script_of

RARE = 3
"""A letter seen fewer times is listed: it may be a misprint, and no model learns a sound from so few."""
_NAMED, _LISTED = 5, 20
"""Characters in an error, in a list."""
_OTHER_LANGUAGE = "--set text.language=CODE (ISO 639, such as de) if the corpus is in another language"

_IPA_LETTERS = "".join(map(chr, range(0x250, 0x2E0)))
"""Unicode's letters of the International Phonetic Alphabet, stress and length."""

Fate = Literal["left out", "folded", "rare"]


@dataclass(frozen=True, kw_only=True)
class CharacterCount:
    """One character of a corpus that a person has to hear of."""

    character: str
    name: str
    """Of Unicode."""
    count: int
    example: str
    """Id of a clip that has it."""
    fate: Fate
    """`left out` has no token; `folded` lost its accent (English); `rare` has one, but is hardly ever seen."""
    is_letter: bool

    @property
    def shown(self) -> str:
        """`a 1,203x in clip X`; what cannot be printed by its number."""
        character = self.character if self.character.isprintable() else f"U+{ord(self.character):04X}"
        return f"{character} {self.count:,}x in clip {self.example}"


@dataclass
class LetterCounts:
    """Counts over the clips of one language."""

    language: str = "en"
    letters: Counter[str] = field(default_factory=Counter)
    """Every letter of the corpus, small, with or without a token."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Characters without a token, letters or not."""
    folded: Counter[str] = field(default_factory=Counter)
    """Letters with a token that is not theirs: accents that English loses."""
    examples: dict[str, str] = field(default_factory=dict)
    """Of each letter a clip that has it: the first in the alphabet of ids."""

    def add(self, clip_id: str, text: str, left_out: Collection[str]) -> None:
        """Count one clip; `left_out` are the characters that `Tokenizer.encode` did not know (`Tokens.unknown`)."""
        whole, text = text, GIVEN.sub(" ", text)
        if text.isascii() and not left_out:  # as nearly every English text: no letter to look at alone
            plain = Counter(filter(str.isalpha, text.lower()))
            self.letters.update(plain)
            self._keep_examples(clip_id, plain)
            return
        small, seen = small_letters(text, self.language), set(left_out)
        letters = Counter(c for c in small if is_letter(c))
        self.letters.update(letters)
        noted = set[str]()
        if self.language == "en":
            for letter in [c for c in letters if not unicodedata.normalize("NFKC", c).isascii()]:
                lost = letter in seen or bool(seen.intersection(fold_english(letter)))
                (self.left_out if lost else self.folded)[letter] += letters[letter]
                noted.add(letter)
            seen -= {c for letter in noted for c in (letter, *fold_english(letter))}
        for c in seen:
            self.left_out[c] += small.count(c) or composed(small).count(c) or whole.count(c) or 1
        self._keep_examples(clip_id, noted | seen | letters.keys())

    def merge(self, other: "LetterCounts") -> None:
        """Add the counts over other clips of the same language."""
        for mine, its in ((self.letters, other.letters), (self.left_out, other.left_out), (self.folded, other.folded)):
            mine.update(its)
        for character, clip_id in other.examples.items():
            self._keep_examples(clip_id, [character])

    def _keep_examples(self, clip_id: str, characters: Iterable[str]) -> None:
        for character in characters:
            self.examples[character] = min(clip_id, self.examples.get(character, clip_id))

    @property
    def share(self) -> float:
        """Share of the letters that are left out or folded, 0 to 1."""
        return sum(one.count for one in self.characters() if one.is_letter and one.fate != "rare") / max(
            1, self.letters.total()
        )

    def characters(self) -> list[CharacterCount]:
        """What `build`, `stats` and `report` tell: the most frequent first, rare letters last."""
        lost = self.left_out.keys() | self.folded.keys()
        few = {} if self.language in ("en", *BY_READING) else {c: n for c, n in self.letters.items() if n < RARE}
        rare = Counter({c: n for c, n in few.items() if c not in lost})
        return [*self._rows(self.left_out, "left out"), *self._rows(self.folded, "folded"), *self._rows(rare, "rare")]

    def _rows(self, counts: Counter[str], fate: Fate) -> Iterator[CharacterCount]:
        for character, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
            yield CharacterCount(
                character=character, name=unicodedata.name(character, f"U+{ord(character):04X}"), count=count,
                example=self.examples[character], fate=fate, is_letter=is_letter(character),
            )  # fmt: skip


def count_letters(texts: Iterable[tuple[str, str, str, str]], language: str) -> list[LetterCounts]:
    """Counts of each language, by code; `language` is that of the texts that do not name theirs.

    texts: (clip id, text, its language or nothing, characters left out) of every clip.
    """
    counts = dict[str, LetterCounts]()
    for clip_id, text, code, left_out in texts:
        code = code or language
        if code not in counts:
            counts[code] = LetterCounts(code)
        counts[code].add(clip_id, text, left_out)
    return [counts[code] for code in sorted(counts)]


def letter_lines(counts: Iterable[LetterCounts]) -> list[str]:
    """What to print of them: a line for each character that a person should look at, the most frequent first."""
    lines = list[str]()
    for one in counts:
        found = one.characters()
        if not found:
            continue
        lines.append(f"characters of language {one.language} to look at ({one.share:.2%} of its letters are lost):")
        for character in found[:_LISTED]:
            shown = character.character if character.character.isprintable() else ""
            what = "seen rarely" if character.fate == "rare" else character.fate
            lines.append(f"  {shown} {character.name}: {character.count:,}x {what}, as in {character.example}".rstrip())
        if len(found) > _LISTED:
            lines.append(f"  and {len(found) - _LISTED} more")
    return lines


def check_letters(counts: LetterCounts, most: float, *, kind: str = "characters") -> None:
    """Raise a `LockstepError` when a corpus is not in its language, or loses more than `most` of its letters.

    counts: of all clips of one language. most, kind: `text.max_unknown_share` and `text.tokenizer`.
    """
    _check_script(counts)
    if counts.share <= most:
        return
    lost = [one for one in counts.characters() if one.is_letter and one.fate != "rare"]
    scripts = Counter[str]()
    for one in lost:
        scripts[script_of(one.character)] += one.count
    named = ", ".join(one.shown for one in lost[:_NAMED]) + (", ..." if len(lost) > _NAMED else "")
    script = script_name(max(scripts, key=lambda one: (scripts[one], one)))
    raise LockstepError(
        "text.language", found=f"{counts.share:.2%} of the letters {_reason(counts, kind)} ({script}: {named})",
        expected=f"at most {most:.2%} with text.language={counts.language}", fix=_fix(counts, kind), exit_code=1,
    )  # fmt: skip


def _reason(counts: LetterCounts, kind: str) -> str:
    if counts.language == "en" and counts.folded.total() > counts.left_out.total():
        return "are not English and would lose their accents"
    return "would be spelled by espeak-ng" if kind == "phonemes" else "are not in the symbol table"


def _check_script(counts: LetterCounts) -> None:
    script, language = main_script(counts.letters), find_language(counts.language)
    if not script or not language.scripts or script in language.scripts:
        return
    raise LockstepError(
        "text.language", found=f"{language.name} ({language.code}), but most letters are {script_name(script)}",
        expected=" or ".join(map(script_name, language.scripts)), fix=_OTHER_LANGUAGE, exit_code=1,
    )  # fmt: skip


def _fix(counts: LetterCounts, kind: str) -> str:
    tolerate = f"--set text.max_unknown_share={math.ceil(counts.share * 1000) / 1000:g} to lose them"
    lost = counts.left_out + counts.folded
    if 2 * sum(lost[c] for c in _IPA_LETTERS) > lost.total():
        return f"write phonemes as [[...]] and build with --set text.tokenizer=phonemes, or {tolerate}"
    other = "--set text.tokenizer=characters" if kind == "phonemes" and counts.language != "en" else ""
    return ", or ".join(filter(None, [_OTHER_LANGUAGE, other, tolerate]))
