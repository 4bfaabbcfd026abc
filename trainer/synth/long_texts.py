"""Speech from texts of any length, piece by piece."""

import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from xtts.shared.errors import LockstepError
from xtts.shared.text.tokenizer import Tokenizer
from xtts.trainer.synth.input_texts import Text
from xtts.trainer.synth.sentences import split_text
from xtts.trainer.synth.speaker import Speaker
from xtts.trainer.synth.time_budget import TimedPiece, check_seconds, share_frames
from xtts.trainer.synth.vocoder.vocoder import Vocoder

_PAUSE_SECONDS = 0.15
"""Silence between the pieces of a long text, in addition to what the model leaves at their ends."""
_SHORTER = 0.6
"""A piece whose speech exceeds every shape is split into pieces of at most this share of its tokens."""


@dataclass(frozen=True, kw_only=True)
class Piece:
    """The speech of one piece of a text, with the pause after it."""

    mel: np.ndarray
    """float32[T, M], natural-log magnitude."""
    samples: np.ndarray
    """float32[S] in -1 to 1."""
    last: bool
    """Whether the text ends with it."""


@dataclass(frozen=True, kw_only=True)
class Speech:
    """The speech of a text."""

    mel: np.ndarray
    """float32[T, M], natural-log magnitude."""
    samples: np.ndarray
    """float32[S] in -1 to 1."""
    pieces: int
    seconds: float
    """Time of synthesis, without compilation."""
    first_seconds: float
    """The same until the first piece could be heard."""


class Narrator:
    """Speaks texts; every piece of a text gets its own noise.

    A text that the largest shape holds is one piece. A longer one is spoken sentence by sentence, so that its beginning
    is heard early; short sentences are joined while the smallest shape holds them.
    """

    def __init__(self, speaker: Speaker, vocoder: Vocoder, *, speaker_number: int, language: str) -> None:
        self.speaker, self.vocoder, self.speaker_number, self.language = speaker, vocoder, speaker_number, language
        self.language_number = speaker.voice.languages.index(language)
        self.tokenizer: Tokenizer = speaker.voice.symbol_table

    def speak(self, text: Text) -> Speech:
        """Speak a text with at least one known character."""
        pieces, times, clock = [], [], self.speaker.clock
        began, compiled = time.perf_counter(), clock.compile_seconds
        for piece in self.pieces(text):
            pieces.append(piece)
            times.append(time.perf_counter() - began - (clock.compile_seconds - compiled))
        return Speech(
            mel=np.concatenate([piece.mel for piece in pieces]),
            samples=np.concatenate([piece.samples for piece in pieces]),
            pieces=len(pieces), seconds=times[-1], first_seconds=times[0],
        )  # fmt: skip

    def pieces(self, text: Text) -> Iterator[Piece]:
        """The speech of a text with at least one known character, each piece as soon as it is ready.

        Each piece is vocoded separately, so that memory does not grow with the text.
        """
        profile = self.speaker.voice.mel_profile
        pause_frames = round(_PAUSE_SECONDS * profile.sample_rate / profile.hop_samples)
        pause = np.full((pause_frames, profile.mel_channels), profile.silence, np.float32)
        pieces, number = self._cut(text.words, self.speaker.voice.most_tokens), 0
        frames = deque(self._share_time(text, pieces, pause_frames))
        waiting = deque(pieces)
        while waiting:
            words, most_tokens = waiting.popleft()
            ids = self._ids(words)
            spoken = self.speaker.speak(
                ids, speaker=self.speaker_number, language=self.language_number, number=number,
                frames=frames.popleft() if frames else 0,
            )  # fmt: skip
            number += 1
            if spoken.frames <= len(spoken.mel):
                mel = np.concatenate([spoken.mel, pause]) if waiting else spoken.mel
                yield Piece(mel=mel, samples=self.vocoder(mel), last=not waiting)
            else:
                shorter = self._cut_shorter(text, words, most_tokens, frames=spoken.frames, most=len(spoken.mel))
                waiting.extendleft(reversed(shorter))

    def _share_time(self, text: Text, pieces: list[tuple[str, int]], pause_frames: int) -> list[int]:
        """The frames of each piece of a text that is to last for `seconds`, empty for one that is not.

        Replaces pieces that would be longer than the largest shape.
        """
        if (seconds := self.speaker.options.seconds) is None:
            return []
        voice = self.speaker.voice
        frames_per_second, whole = voice.mel_profile.sample_rate / voice.mel_profile.hop_samples, True
        while True:
            timed = [self._timed(words) for words, _ in pieces]
            pauses = pause_frames * (len(pieces) - 1)
            if whole:  # shorter pieces lose the spaces between them, and gain pauses
                check_seconds(
                    seconds, timed, frames_per_second=frames_per_second, pauses=pauses, where=text.where
                )  # fmt: skip
            frames = share_frames(round(seconds * frames_per_second) - pauses, timed)
            most = [max(shape.frames for shape in voice.ladder if shape.tokens >= piece.tokens) for piece in timed]
            long = next((i for i in range(len(pieces)) if frames[i] > most[i]), None)
            if long is None:
                return frames
            pieces[long : long + 1] = self._cut_shorter(text, *pieces[long], frames=frames[long], most=most[long])
            whole = False

    def _timed(self, words: str) -> TimedPiece:
        ids = self._ids(words)
        frames = self.speaker.count_frames(ids, speaker=self.speaker_number, language=self.language_number)
        return TimedPiece(tokens=len(ids), frames=frames)

    def _cut_shorter(
        self, text: Text, words: str, most_tokens: int, *, frames: int, most: int
    ) -> list[tuple[str, int]]:
        """The parts of a piece that speaks for more frames than the largest shape has; `LockstepError` for a letter."""
        if len(words) <= 1:
            raise LockstepError(
                f"{text.where}: {words!r}", found=f"speaks for {frames} frames",
                expected=f"at most {most}, the largest shape",
                fix="raise --speed, or train further: this checkpoint has not learnt durations yet",
            )  # fmt: skip
        return self._cut(words, min(int(len(self._ids(words)) * _SHORTER), most_tokens - 1))

    def _ids(self, text: str) -> list[int]:
        return self.tokenizer.encode(text, self.language).ids

    def _cut(self, words: str, most_tokens: int) -> list[tuple[str, int]]:
        """Pieces with something to speak, in order, each with the tokens that it was to fit into."""
        short = min(self.speaker.voice.ladder[0].tokens, most_tokens)
        pieces = split_text(
            words, lambda part: len(self._ids(part)) <= most_tokens, lambda part: len(self._ids(part)) <= short
        )
        return [(piece, most_tokens) for piece in pieces if self._ids(piece)]
