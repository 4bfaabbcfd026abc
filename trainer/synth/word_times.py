"""When each word of a text is spoken, from the durations of its tokens, and files that say so."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, NamedTuple

from xtts.shared.text.alphabet import PUNCTUATION
from xtts.trainer.synth.marked_text import Words
from xtts.trainer.synth.output_files import write_whole

SUFFIXES = (".json", ".srt")
_NO_MARKS = str.maketrans("", "", PUNCTUATION)


class Token(NamedTuple):
    """A token of some speech."""

    symbol: str
    """Its letters, marks and spaces; empty for a blank."""
    start: float
    """Seconds."""
    end: float


@dataclass(frozen=True, kw_only=True)
class Word:
    """A word of a text as its writer sees it, with its marks."""

    word: str
    start: float
    """Seconds from the beginning of the audio to its first letter."""
    end: float
    """The same to the end of its last letter."""


def time_words(lines: Sequence[Words], tokens: Sequence[Token], spell: Callable[[str], str]) -> list[list[Word]]:
    """The words of every line with their times; what nobody says, such as a dash, is no word.

    They are those of the written text: a number, a date or an abbreviation is one word, however many are spoken. They
    are found among the tokens by the symbols that each has alone. Where it is spoken otherwise in its sentence, or as
    one with its neighbour (espeak-ng's "of the"), the letters in between are shared in proportion.

    lines: of the text, in order; tokens: of its whole speech; spell: the symbols of a word that is spoken alone.
    """
    written = [word for line in lines for word in line]
    parts = [
        (part, number)
        for number, (_, spoken) in enumerate(written)
        for part in spell(spoken).translate(_NO_MARKS).split()
    ]
    letters = _letters(tokens)
    heard = "".join(letter for letter, _, _ in letters).split()
    spans = dict[int, list[tuple[float, float]]]()
    if parts:
        sounds = [(start, end) for letter, start, end in letters if letter != " "]
        for number, sound in zip(_owners(parts, heard), sounds, strict=True):
            spans.setdefault(number, []).append(sound)
    words, end = dict[int, Word](), 0.0
    for number in dict.fromkeys(number for _, number in parts):
        start, end = (spans[number][0][0], spans[number][-1][1]) if number in spans else (end, end)
        words[number] = Word(word=written[number][0].strip(), start=round(start, 3), end=round(end, 3))
    numbers = iter(range(len(written)))
    return [[words[number] for _, number in zip(line, numbers, strict=False) if number in words] for line in lines]


def _letters(tokens: Sequence[Token]) -> list[tuple[str, float, float]]:
    """Every letter and space with its start and end; a blank belongs to the letter before it."""
    found, letters = list[tuple[str, float, float]](), ""
    for symbol, start, end in tokens:
        if not symbol and letters:
            found[-1] = (*found[-1][:2], end)
        letters = symbol.translate(_NO_MARKS)
        found += [(letter, start, end) for letter in letters]
    return found


def _owners(parts: Sequence[tuple[str, int]], heard: Sequence[str]) -> list[int]:
    """The word of each letter in `heard`; parts: (letters, their word), at least one."""
    owners = list[int]()
    same = SequenceMatcher(None, [letters for letters, _ in parts], heard, autojunk=False)
    for kind, start, stop, first, last in same.get_opcodes():
        letters = "".join(heard[first:last])
        own = parts[start:stop] or parts[max(start - 1, 0) : max(start, 1)]
        if kind != "replace" or all(len(part) == 1 for part in (*heard[first:last], *(part for part, _ in own))):
            spelled = [number for part, number in own for _ in part]
            owners += [spelled[place * len(spelled) // len(letters)] for place in range(len(letters))]
        else:  # once more, letter by letter
            owners += _owners([(letter, number) for part, number in own for letter in part], letters)
    return owners


def times_json(lines: Sequence[Sequence[Word]], seconds: float) -> dict[str, Any]:
    """`seconds` of the audio and its `words`, each with `word`, `start` and `end`."""
    return {"seconds": round(seconds, 3), "words": [asdict(word) for line in lines for word in line]}


def write_times(path: Path, lines: Sequence[Sequence[Word]], seconds: float) -> None:
    """Write the words as JSON, or as subtitles of one cue a line, as the suffix says; seconds: of the audio."""
    if path.suffix.lower() == ".srt":
        cues = [f"{_clock(line[0].start)} --> {_clock(line[-1].end)}\n{' '.join(word.word for word in line)}\n"
                for line in lines if line]  # fmt: skip
        text = "\n".join(f"{number}\n{cue}" for number, cue in enumerate(cues, 1))
    else:
        text = json.dumps(times_json(lines, seconds), ensure_ascii=False, indent=1) + "\n"
    write_whole(path, text.encode())


def _clock(seconds: float) -> str:
    """As SubRip writes it: 01:02:03,456."""
    minutes, milliseconds = divmod(round(1000 * seconds), 60_000)
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{milliseconds // 1000:02d},{milliseconds % 1000:03d}"
