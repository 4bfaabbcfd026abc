"""Word times of a text, from the durations of its tokens, and files with them."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import NamedTuple

from xtts.shared.text.alphabet import PUNCTUATION
from xtts.trainer.speech.marked_text import Words
from xtts.trainer.speech.output_files import write_bytes

_NO_MARKS = str.maketrans("", "", PUNCTUATION)


class Token(NamedTuple):
    """A token of some speech."""

    symbol: str
    """Letters, marks and spaces; empty for a blank."""
    start: float
    """Seconds."""
    end: float
    """Seconds."""


@dataclass(frozen=True, kw_only=True)
class Word:
    """A word of a text as written, with its marks."""

    word: str
    start: float
    """Seconds from the beginning of the audio to the start of its first letter."""
    end: float
    """Seconds from the beginning of the audio to the end of its last letter."""


def time_words(written: Words, tokens: Sequence[Token], spell: Callable[[str], str]) -> list[Word]:
    """Time the words of a text; what is not spoken, such as a dash, is omitted.

    Words are those of the written text: a number, a date or an abbreviation is one word, however many are spoken. They
    are matched with the tokens by the symbols that each has when spoken alone. Where its symbols differ in the
    sentence, or it is joined with its neighbour (espeak-ng's "of the"), the letters in between are shared in
    proportion.

    written: words in order; tokens: of their speech; spell: gives the symbols of a word that is spoken alone.
    """
    spelled = [
        (letters, i) for i, (_, spoken) in enumerate(written) for letters in spell(spoken).translate(_NO_MARKS).split()
    ]
    timed_letters = _letters(tokens)
    sounds = "".join(letter for letter, _, _ in timed_letters).split()
    spans = dict[int, list[tuple[float, float]]]()
    if spelled:
        times = [(start, end) for letter, start, end in timed_letters if letter != " "]
        for i, time in zip(_owners(spelled, sounds), times, strict=True):
            spans.setdefault(i, []).append(time)
    words, end = list[Word](), 0.0
    for i in dict.fromkeys(i for _, i in spelled):
        start, end = (spans[i][0][0], spans[i][-1][1]) if i in spans else (end, end)
        words.append(Word(word=written[i][0].strip(), start=round(start, 3), end=round(end, 3)))
    return words


def _letters(tokens: Sequence[Token]) -> list[tuple[str, float, float]]:
    """Every letter and space with its start and end; a blank belongs to the letter before it."""
    timed, letters = list[tuple[str, float, float]](), ""
    for symbol, start, end in tokens:
        if not symbol and letters:
            timed[-1] = (*timed[-1][:2], end)
        letters = symbol.translate(_NO_MARKS)
        timed += [(letter, start, end) for letter in letters]
    return timed


def _owners(spelled: Sequence[tuple[str, int]], spoken: Sequence[str]) -> list[int]:
    """The word of each letter in `spoken`; spelled: (letters, their word), at least one."""
    owners = list[int]()
    matcher = SequenceMatcher(None, [letters for letters, _ in spelled], spoken, autojunk=False)
    for kind, start, stop, first, last in matcher.get_opcodes():
        spoken_letters = "".join(spoken[first:last])
        own = spelled[start:stop] or spelled[max(start - 1, 0) : max(start, 1)]
        single_letters = all(len(letters) == 1 for letters in (*spoken[first:last], *(letters for letters, _ in own)))
        if kind != "replace" or single_letters:
            candidates = [i for letters, i in own for _ in letters]
            count = len(spoken_letters)
            owners += [candidates[k * len(candidates) // count] for k in range(count)]
        else:  # match again, letter by letter
            owners += _owners([(letter, i) for letters, i in own for letter in letters], spoken_letters)
    return owners


def times_json(words: Sequence[Word], seconds: float) -> dict[str, object]:
    """Return the JSON of word times: `seconds` of the audio and its `words`, each with `word`, `start` and `end`."""
    return {"seconds": round(seconds, 3), "words": [asdict(word) for word in words]}


def write_times(path: Path, words: Sequence[Word], seconds: float) -> None:
    """Write the words as JSON; seconds: of the audio."""
    text = json.dumps(times_json(words, seconds), ensure_ascii=False, indent=1) + "\n"
    write_bytes(path, text.encode())
