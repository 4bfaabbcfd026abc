"""Speech from texts of any length: split where it has to be, spoken piece by piece, and joined."""

import re
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise

import numpy as np

from xtts.shared.errors import LockstepError
from xtts.shared.text.text_normalization import expand
from xtts.trainer.evaluation.voice_description import Voice
from xtts.trainer.synth.synthesizer import Synthesizer
from xtts.trainer.synth.vocoder.vocoder import Vocoder

_PAUSE_SECONDS = 0.15
"""Silence between the pieces of a long text, in addition to what the model leaves at their ends."""
_SHORTER = 0.6
"""A piece whose speech exceeds every shape is split into pieces of at most this share of its tokens."""
MOST_CHANGE = 4.0
"""A text may be spoken in a quarter to four times its own time, the range of `--speed`."""
_CLOSING = "[\"')\\]\u2019\u201d\u00bb\u300d\u300f\u300b\uff09]*"
_CLAUSE, _WIDE_CLAUSE = ",;:\u060c\u061b\u055d\u1363\u1364\u104a\u17d4", "\uff0c\u3001\uff1b\uff1a"
"""Marks within a sentence, with Khmer's at its end; no space follows the wide ones of Chinese and Japanese."""
_BREAKS = (rf"[{_CLAUSE}]{_CLOSING}\s+|[{_WIDE_CLAUSE}]{_CLOSING}\s*|\s+[-\u2013\u2014]+\s+|\n", r"\s+")
"""Where a sentence is cut that is too long."""


@dataclass(frozen=True, kw_only=True)
class Text:
    """A text, or a piece of one."""

    words: str
    """As it is spoken, with numbers as words."""
    ids: list[int]
    """Its tokens."""
    where: str
    """Where the whole text is from, for messages: `TEXT`, or a file and its line."""


@dataclass(frozen=True, kw_only=True)
class Speech:
    """The speech of a text, or of a piece of one with the pause after it."""

    mel: np.ndarray
    """float32[T, M], natural-log magnitude."""
    samples: np.ndarray
    """float32[S] in -1 to 1."""
    seconds: float
    """Time of synthesis, without compilation."""
    first_seconds: float
    """The same until the first piece could be heard."""
    pieces: int = 1
    last: bool = True
    """Whether the text ends with it."""


def encode_text(words: str, voice: Voice, language: str, where: str) -> tuple[Text, list[str]]:
    """A text with its tokens, and warnings about characters that are left out.

    Raises:
        LockstepError: There is nothing else in it.
    """
    words = expand(words, language) if voice.expand_numbers else words
    tokens = voice.symbol_table.encode(words.strip(), language)
    unknown = " ".join(c if c.isprintable() else f"U+{ord(c):04X}" for c in tokens.unknown)
    if not tokens.ids:
        found = f"only unknown characters: {unknown}" if unknown else "no text"
        raise LockstepError(where, found=f"nothing to speak ({found})", expected="letters of the symbol table")
    warnings = [f"{where}: left out what the symbol table does not hold: {unknown}"] if unknown else []
    return Text(words=words.strip(), ids=list(tokens.ids), where=where), warnings


class LongFormSynthesizer:
    """Speaks texts with one voice; every piece of a text gets its own noise.

    A text that the largest shape holds is one piece. A longer one is spoken sentence by sentence, so that its beginning
    is heard early; short sentences are joined while the smallest shape holds them.
    """

    def __init__(self, synthesizer: Synthesizer, vocoder: Vocoder, *, speaker: int, language: str) -> None:
        """speaker: row of the model's table, language: its code."""
        self.synthesizer, self.vocoder, self.speaker, self.language = synthesizer, vocoder, speaker, language
        self.voice, self.profile = synthesizer.voice, synthesizer.voice.mel_profile
        self._row = self.voice.languages.index(language)
        self._pause = np.full(
            (round(_PAUSE_SECONDS * self.profile.sample_rate / self.profile.hop_samples), self.profile.mel_channels),
            self.profile.silence, np.float32,
        )  # fmt: skip

    def speak(self, text: Text) -> Speech:
        """Speak a text."""
        pieces = list(self.pieces(text))
        return Speech(
            mel=np.concatenate([piece.mel for piece in pieces]),
            samples=np.concatenate([piece.samples for piece in pieces]),
            seconds=sum(piece.seconds for piece in pieces), first_seconds=pieces[0].seconds, pieces=len(pieces),
        )  # fmt: skip

    def pieces(self, text: Text) -> Iterator[Speech]:
        """The speech of a text, each piece as soon as it is ready.

        Each piece is vocoded separately, so that memory does not grow with the text.
        """
        began, compiled = time.perf_counter(), self.synthesizer.compile_seconds
        for mel, last in self.mels(text):
            samples = self.vocoder(mel)
            seconds = time.perf_counter() - began - (self.synthesizer.compile_seconds - compiled)
            yield Speech(mel=mel, samples=samples, seconds=seconds, first_seconds=seconds, last=last)
            began, compiled = time.perf_counter(), self.synthesizer.compile_seconds

    def mels(self, text: Text) -> Iterator[tuple[np.ndarray, bool]]:
        """The log-mel float32[T, M] of each piece, with the pause after it, and whether it is the last."""
        synthesizer, number = self.synthesizer, 0
        waiting = deque(self._cut(text, self.voice.most_tokens))
        frames = deque(self._share_seconds(waiting))
        while waiting:
            piece = waiting.popleft()
            mel, length = synthesizer.speak(
                piece.ids, speaker=self.speaker, language=self._row, number=number,
                frames=frames.popleft() if frames else 0,
            )  # fmt: skip
            number += 1
            if length > len(mel):
                waiting.extendleft(reversed(self._cut_shorter(piece, frames=length, most=len(mel))))
                continue
            if waiting:
                mel = np.concatenate([mel, self._pause])
            yield mel, not waiting

    def _cut(self, text: Text, most_tokens: int) -> list[Text]:
        """Pieces with something to speak, in order, of at most so many tokens or a single character each."""
        if len(text.ids) <= most_tokens:
            return [text]
        tokenizer, short = self.voice.symbol_table, min(self.voice.shapes[0].tokens, most_tokens)
        encode = cache(lambda words: list(tokenizer.encode(words, self.language).ids))
        parts = split_text(
            text.words, self.language,
            lambda part: len(encode(part)) <= most_tokens, lambda part: len(encode(part)) <= short,
        )  # fmt: skip
        return [replace(text, words=part, ids=encode(part)) for part in parts if encode(part)]

    def _cut_shorter(self, piece: Text, *, frames: int, most: int) -> list[Text]:
        """The parts of a piece that speaks for more frames than the largest shape has; `LockstepError` for a letter."""
        if len(piece.words) <= 1:
            raise LockstepError(
                f"{piece.where}: {piece.words!r}", found=f"speaks for {frames} frames",
                expected=f"at most {most}, the largest shape",
                fix="raise --speed, or train further: this checkpoint has not learnt durations yet",
            )  # fmt: skip
        return self._cut(piece, int(len(piece.ids) * _SHORTER))

    def _share_seconds(self, pieces: deque[Text]) -> list[int]:
        """The frames of each piece of a text that is to last for `seconds`, empty for one that is not.

        Replaces pieces that would be longer than the largest shape.
        """
        if (seconds := self.synthesizer.options.seconds) is None:
            return []
        per_second, whole = self.profile.sample_rate / self.profile.hop_samples, True
        while True:
            least = [len(piece.ids) for piece in pieces]
            own = [self.synthesizer.count_frames(x.ids, speaker=self.speaker, language=self._row) for x in pieces]
            pauses = len(self._pause) * (len(pieces) - 1)
            if whole:  # shorter pieces lose the spaces between them, and gain pauses
                _check_seconds(seconds, own, least, per_second=per_second, pauses=pauses, where=pieces[0].where)
            frames = share_frames(round(seconds * per_second) - pauses, own, least)
            most = [max(shape.frames for shape in self.voice.shapes if shape.tokens >= tokens) for tokens in least]
            long = next((i for i in range(len(pieces)) if frames[i] > most[i]), None)
            if long is None:
                return frames
            shorter = self._cut_shorter(pieces[long], frames=frames[long], most=most[long])
            del pieces[long]
            for part in reversed(shorter):
                pieces.insert(long, part)
            whole = False


def _check_seconds(
    seconds: float, own: Sequence[int], least: Sequence[int], *, per_second: float, pauses: int, where: str
) -> None:
    """Raise `LockstepError` for a text that cannot be spoken in that time.

    own: frames of each piece at speed 1, least: its tokens, per_second: frames, pauses: frames between the pieces,
    which count and are not scaled, where: the text, for messages.
    """
    shortest, longest = max(sum(own) / MOST_CHANGE, sum(least)), sum(own) * MOST_CHANGE
    if not shortest <= round(seconds * per_second) - pauses <= longest:
        lowest, itself, most = ((frames + pauses) / per_second for frames in (shortest, sum(own), longest))
        raise LockstepError(
            where, found=f"{seconds:g} s asked for", expected=f"{lowest + 0.005:.2f} to {most - 0.005:.2f} s",
            fix=f"ask for a time near its own, {itself:.2f} s, or change the text",
        )  # fmt: skip


def share_frames(asked: int, own: Sequence[int], least: Sequence[int]) -> list[int]:
    """The frames of each piece: in proportion to its own, at least its tokens, `least`, and `asked` in all."""
    later, tokens, shares = sum(own), sum(least), list[int]()
    for frames, fewest in zip(own, least, strict=True):
        later, tokens = later - frames, tokens - fewest
        share = round(asked * frames / (frames + later))
        shares.append(min(max(share, fewest), asked - tokens))
        asked -= shares[-1]
    return shares


def split_text(
    text: str, language: str, fits: Callable[[str], bool], short: Callable[[str], bool] | None = None
) -> list[str]:
    """Ordered pieces of `text` that each fit or are a single character; one piece if the whole text fits.

    Neighbouring sentences of a longer text are joined while they are together `short`, by default while they fit.
    """
    text = text.strip()
    if not text:
        return []
    if fits(text) or len(text) == 1:
        return [text]
    for level, parts in enumerate(_divisions(text, language)):
        if len(parts) > 1:
            joined = _pack(parts, short if short and level == 0 else fits)
            return [piece for part in joined for piece in split_text(part, language, fits, short)]
    middle = len(text) // 2
    return split_text(text[:middle], language, fits) + split_text(text[middle:], language, fits)


def _divisions(text: str, language: str) -> Iterator[list[str]]:
    """The text cut at sentences, then at clauses, then at words."""
    from sentencex import segment

    # 1.0.32 panics at the wide space of CJK between an initial and a full stop.
    yield list(segment(language, "".join(" " if c.isspace() and c != "\n" else c for c in text)))
    for pattern in _BREAKS:
        ends = [found.end() for found in re.finditer(pattern, text)]
        yield [text[start:end] for start, end in pairwise([0, *ends, len(text)]) if start < end]


def _pack(parts: list[str], fits: Callable[[str], bool]) -> Iterator[str]:
    """Join neighbours while they fit: a fragment such as "Yes." is not spoken alone."""
    packed = parts[0]
    for part in parts[1:]:
        if fits((packed + part).strip()):
            packed += part
        else:
            yield packed
            packed = part
    yield packed
