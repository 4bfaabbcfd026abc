"""Speech of texts of any length: split into pieces, spoken piece by piece, and joined."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate, islice, pairwise
from typing import NamedTuple, Self

import numpy as np

from xtts.shared.audio.griffin_lim import shortest_samples
from xtts.shared.audio.trim_and_loudness import amplify, integrated_loudness
from xtts.shared.errors import LockstepError
from xtts.shared.text.alphabet import join_surrogates
from xtts.shared.text.pronunciation import apply_lexicon, written_entries
from xtts.shared.text.text_normalization import expand
from xtts.shared.text.tokenizer import SPECIAL, Tokens
from xtts.trainer.speech.marked_text import SENTENCE_PAUSE, Words, read_passages
from xtts.trainer.speech.sentences import split_sentences, split_text, units_of, with_falling_questions
from xtts.trainer.speech.synthesis_options import SynthesisOptions
from xtts.trainer.speech.synthesizer import Synthesizer
from xtts.trainer.speech.vocoder import MelToSamples
from xtts.trainer.speech.voice_description import Voice
from xtts.trainer.speech.word_times import Token, Word, time_words

_SHORTER = 0.6
"""A piece whose speech exceeds every shape is split into pieces of at most this share of its tokens."""
_NUMBERS = (f"{', '.join(map(str, range(1, 11)))}.", "1234567.")
"""The texts whose loudness is measured. Their mean is within 1.1 LU of that of sentences for our voices and for eight
people of LibriSpeech, who count up to 3.6 LU too quietly and say the number up to 3.2 LU too loudly; within 3.5 for a
Dutch man."""
_QUIETEST = -50.0
"""Loudness of a voice, in LUFS, below which the gain no longer grows: there is nothing but noise."""


@dataclass(frozen=True, kw_only=True)
class Text:
    """A passage of a text without a marked pause, or a piece of one."""

    words: str
    """The text as spoken, with numbers as words."""
    ids: list[int]
    """Token ids; none for a pause without words before it."""
    location: str
    """Origin of the text, for messages: `TEXT`, or FILE:LINE."""
    pause: int
    """Frames of silence after it, in addition to the silent edges of its mel."""
    written: Words
    """Words of the passage as written."""


class MelPiece(NamedTuple):
    """The mel of a piece of a text, with the pause after it."""

    mel: np.ndarray
    """float32[T, M], natural-log magnitude."""
    tokens: list[Token]
    """Tokens with their times from the piece's beginning; pauses have none."""
    last: bool
    """Whether the text ends with it."""

    def without_mel(self) -> Self:
        """Return the piece with a mel as long as its own, of zeros that take no memory."""
        return self._replace(mel=np.broadcast_to(np.float32(0.0), self.mel.shape))


@dataclass(frozen=True, kw_only=True)
class Speech:
    """The speech of a text."""

    mel: np.ndarray
    """float32[T, M], natural-log magnitude."""
    samples: np.ndarray
    """float32[S] in -1 to 1."""
    tokens: list[Token]
    """Tokens with their times; pauses have none."""
    words: list[Word]
    """The words of the text, with their times in its samples."""


def encode_text(words: str, voice: Voice, language: str, location: str) -> tuple[list[Text], list[str]]:
    """Encode a text: (its passages, warnings about what is skipped). For pauses and SSML see `marked_text`.

    Raises:
        LockstepError: There is nothing to speak.
    """
    whole = join_surrogates(words)
    passages, warnings = read_passages(whole, location, phonemes=voice.tokenizer.kind == "phonemes")
    texts, left_out = list[Text](), {*words} - {*whole}
    for passage in passages:
        spoken, tokens = _encode(passage.spoken, voice, language, location)
        left_out.update(tokens.left_out)
        pause = _frames(passage.pause, voice)
        texts.append(Text(words=spoken, ids=tokens.ids, location=location, pause=pause, written=passage.words))
    skipped = " ".join(c if c.isprintable() else f"U+{ord(c):04X}" for c in sorted(left_out))
    if not any(text.ids for text in texts):
        found = f"only unknown characters: {skipped}" if skipped else "no text"
        raise LockstepError(location, found=f"nothing to speak ({found})", expected="letters that the voice knows")
    if skipped:
        warnings.append(f"{location}: skipped what the voice does not know: {skipped}")
    return texts, warnings


def _frames(seconds: float, voice: Voice) -> int:
    return round(seconds * voice.mel_profile.sample_rate / voice.mel_profile.hop_samples)


def _encode(words: str, voice: Voice, language: str, location: str) -> tuple[str, Tokens]:
    """Expand and encode words: (as spoken, tokens)."""
    lexicon = written_entries(voice.tokenizer.lexicon)
    spoken = (expand(words, language, lexicon) if voice.expand_numbers else apply_lexicon(words, lexicon)).strip()
    spoken = with_falling_questions(spoken, language)
    return spoken, voice.tokenizer.encode(spoken, language, location)


class LoadedVoice:
    """A voice that speaks texts; `load_voice` returns one. Every piece of a text gets its own noise.

    A piece is a sentence or a line, so that pauses are alike and the first sound comes early; a sentence that no shape
    holds is several pieces.
    """

    def __init__(self, synthesizer: Synthesizer, vocoder: MelToSamples, *, speaker: int, language: str) -> None:
        """speaker: row of the model's table, language: ISO code."""
        self.synthesizer, self.vocoder, self.speaker, self.language = synthesizer, vocoder, speaker, language
        self.voice, self.profile = synthesizer.voice, synthesizer.voice.mel_profile
        self._row = self.voice.languages.index(language)
        self._frames_per_second = self.profile.sample_rate / self.profile.hop_samples
        self._pause = _frames(SENTENCE_PAUSE, self.voice)
        self.gain: float | None = None
        """Factor of the samples, from `measure`."""

    @property
    def sample_rate(self) -> int:
        """Hz of the samples."""
        return self.profile.sample_rate

    def speak(self, text: str) -> Speech:
        """Speak a text of any length; the same text sounds the same every time.

        Raises:
            LockstepError: Nothing in the text can be spoken. Characters, pauses and tags that the voice does not know
                are skipped with a warning.
        """
        texts, doubts = encode_text(text, self.voice, self.language, "text")
        for doubt in doubts:
            warnings.warn(doubt, stacklevel=2)
        return self.speak_passages(texts)

    def measure(self) -> None:
        """Set the gain from the loudness of the speaker, which is measured once: a text must not move it."""
        synthesizer, options = self.synthesizer, self.synthesizer.options
        if isinstance(options.loudness, str):
            return
        measured = (self.speaker, self._row, options.nfe, options.solver)
        if measured not in synthesizer.levels:
            synthesizer.options = SynthesisOptions(nfe=options.nfe, solver=options.solver)
            synthesizer.levels[measured] = float(np.mean([self._loudness(ids) for ids in self._trials()]))
            synthesizer.options = options
        self.gain = 10 ** ((options.loudness - max(synthesizer.levels[measured], _QUIETEST)) / 20)

    def _loudness(self, ids: list[int]) -> float:
        mel, _ = self.synthesizer.speak(ids, speaker=self.speaker, language=self._row, noise_key=0)
        return integrated_loudness(self.vocoder(mel), self.profile.sample_rate)

    def _trials(self) -> list[list[int]]:
        """Tokens to measure by: numbers, or letters if the voice or its language has no words for numbers."""
        symbols = (symbol for symbol in self.voice.tokenizer.symbols if len(symbol) == 1 and symbol.isalpha())
        letters = "".join(islice(symbols, 40))
        trials = list[list[int]]()
        for text in (*_NUMBERS, letters if self.voice.tokenizer.kind != "phonemes" else f"[[{letters}]]"):
            with suppress(LockstepError):
                ids = list(_encode(text, self.voice, self.language, text)[1].ids)[: self.voice.most_tokens]
                if any(c.isalpha() for c in "".join(self._symbols(ids))):
                    trials.append(ids)
        return trials[: len(_NUMBERS)]

    def speak_passages(self, texts: Sequence[Text]) -> Speech:
        """Speak the passages of a text, as `encode_text` returns them."""
        pieces = list(self.mels(texts))
        return Speech(
            mel=np.concatenate([piece.mel for piece in pieces]),
            samples=np.concatenate([self.vocode(piece.mel) for piece in pieces]), tokens=self._joined(pieces),
            words=self.time(texts, pieces),
        )

    def time(self, texts: Sequence[Text], pieces: Sequence[MelPiece]) -> list[Word]:
        """Time the words of a text in the sound of all its pieces."""
        words = [word for text in texts for word in text.written]
        return time_words(words, self._joined(pieces), cache(self._spell))

    def seconds(self, pieces: Sequence[MelPiece]) -> float:
        """Seconds of the sound of some pieces."""
        samples = sum(shortest_samples(len(piece.mel), self.profile) for piece in pieces if len(piece.mel))
        return samples / self.profile.sample_rate

    def _joined(self, pieces: Sequence[MelPiece]) -> list[Token]:
        """The tokens of all pieces with times from the beginning of the first piece, a space before each piece."""
        starts = accumulate((self.seconds([piece]) for piece in pieces), initial=0.0)
        return [
            Token(symbol, start + begins, start + ends)
            for piece, start in zip(pieces, starts, strict=False)
            for symbol, begins, ends in (Token(" ", 0.0, 0.0), *piece.tokens)
        ]

    def vocode(self, mel: np.ndarray) -> np.ndarray:
        """Turn a mel into samples, float32[S] in -1 to 1; none for a mel without frames."""
        samples = self.vocoder(mel) if len(mel) else np.empty(0, np.float32)
        if self.gain is None:
            return np.clip(samples, -1.0, 1.0)
        return amplify(samples, self.profile.sample_rate, self.gain)

    def mels(self, texts: Sequence[Text]) -> Iterator[MelPiece]:
        """Yield the mel of each piece, with the pause after it, as soon as it is ready."""
        self.measure()
        synthesizer, noise_key = self.synthesizer, 0
        waiting = [piece for text in texts for piece in self._split(text, self.voice.most_tokens)]
        while waiting:
            piece = waiting.pop(0)
            mel, durations = np.empty([0, self.profile.mel_channels], np.float32), np.zeros(0, np.int32)
            if piece.ids:
                mel, durations = synthesizer.speak(
                    piece.ids, speaker=self.speaker, language=self._row, noise_key=noise_key
                )
                noise_key += 1
            if (length := int(durations.sum())) > len(mel):
                waiting[:0] = self._split_shorter(piece, frames=length, most=len(mel))
                continue
            mel = np.pad(mel, [(0, piece.pause), (0, 0)], constant_values=self.profile.silence)
            yield MelPiece(mel, self._timed(piece.ids, durations), not waiting)

    def _timed(self, ids: Sequence[int], durations: np.ndarray) -> list[Token]:
        """The tokens of a piece with their times from its beginning."""
        ends = [0.0, *(durations.cumsum() / self._frames_per_second)]
        return [
            Token(symbol, float(start), float(end))
            for symbol, (start, end) in zip(self._symbols(ids), pairwise(ends), strict=True)
        ]

    def _symbols(self, ids: Sequence[int]) -> list[str]:
        """The symbol of each token, empty for special ones."""
        symbols = self.voice.tokenizer.symbols
        return ["" if symbols[i] in SPECIAL else symbols[i] for i in ids]

    def _spell(self, word: str) -> str:
        """The symbols of a word that is spoken alone."""
        return "".join(self._symbols(_encode(word, self.voice, self.language, word)[1].ids))

    def _split(self, text: Text, most_tokens: int) -> list[Text]:
        """Split a passage into pieces of at most `most_tokens` tokens, or of one character, each with sound.

        A pause follows each sentence.
        """
        encode = cache(lambda words: list(self.voice.tokenizer.encode(words, self.language).ids))
        pieces = list[Text]()
        for sentence in split_sentences(text.words, self.language):
            split = [*filter(encode, split_text(sentence, lambda words: len(encode(words)) <= most_tokens))]
            pieces += [replace(text, words=words, ids=encode(words), pause=0) for words in split]
            if split:
                pieces[-1] = replace(pieces[-1], pause=self._pause)
        return [*pieces[:-1], replace(pieces[-1] if pieces else text, pause=text.pause)]

    def _split_shorter(self, piece: Text, *, frames: int, most: int) -> list[Text]:
        """Split a piece whose speech has more frames than the largest shape; `LockstepError` for a single letter."""
        if len(units_of(piece.words)) <= 1:
            raise LockstepError(
                f"{piece.location}: {piece.words!r}", found=f"speaks for {frames} frames",
                expected=f"at most {most}, the largest shape",
                fix="raise --speed, or train further: this checkpoint has not learnt durations yet",
            )
        return self._split(piece, int(len(piece.ids) * _SHORTER))
