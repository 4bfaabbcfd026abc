"""Speech from texts of any length."""

import time
from dataclasses import dataclass

import numpy as np

from xtts.shared.errors import LockstepError
from xtts.shared.text.tokenizer import Tokenizer
from xtts.trainer.synth.input_texts import Text
from xtts.trainer.synth.sentences import split_text
from xtts.trainer.synth.speaker import Speaker
from xtts.trainer.synth.vocoder.vocoder import Vocoder

_PAUSE_SECONDS = 0.15
"""Silence between the pieces of a long text, in addition to what the model leaves at their ends."""
_SHORTER = 0.6
"""A piece whose speech exceeds every shape is split into pieces of at most this share of its tokens."""


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


class Narrator:
    """Speaks texts; every piece of a text gets its own noise."""

    def __init__(self, speaker: Speaker, vocoder: Vocoder, *, speaker_number: int, language: str) -> None:
        self.speaker, self.vocoder, self.speaker_number, self.language = speaker, vocoder, speaker_number, language
        self.language_number = speaker.voice.languages.index(language)
        self.tokenizer: Tokenizer = speaker.voice.symbol_table
        self._pieces = 0

    def speak(self, text: Text) -> Speech:
        """Speak a text with at least one known character."""
        began, compiled = time.perf_counter(), self.speaker.clock.compile_seconds
        profile = self.speaker.voice.mel_profile
        pause_frames = round(_PAUSE_SECONDS * profile.sample_rate / profile.hop_samples)
        pause = np.full((pause_frames, profile.mel_channels), profile.silence, np.float32)
        self._pieces = 0
        mels = self._mels(text.words, self.speaker.voice.most_tokens, text.where)
        # Each piece is vocoded separately, so that memory does not grow with the text.
        mels = [*(np.concatenate([mel, pause]) for mel in mels[:-1]), mels[-1]]
        samples = np.concatenate([self.vocoder(mel) for mel in mels])
        seconds = time.perf_counter() - began - (self.speaker.clock.compile_seconds - compiled)
        return Speech(mel=np.concatenate(mels), samples=samples, pieces=len(mels), seconds=seconds)

    def _ids(self, text: str) -> list[int]:
        return self.tokenizer.encode(text, self.language).ids

    def _mels(self, words: str, most_tokens: int, where: str) -> list[np.ndarray]:
        """The log-mel [T, M] of every piece of at most `most_tokens` tokens."""
        mels: list[np.ndarray] = []
        for piece in split_text(words, lambda part: len(self._ids(part)) <= most_tokens):
            ids = self._ids(piece)
            if not ids:
                continue
            spoken = self.speaker.speak(
                ids, speaker=self.speaker_number, language=self.language_number, number=self._pieces
            )
            self._pieces += 1
            if spoken.frames <= len(spoken.mel):
                mels.append(spoken.mel)
            elif len(piece) > 1:
                mels += self._mels(piece, min(int(len(ids) * _SHORTER), most_tokens - 1), where)
            else:
                raise LockstepError(
                    f"{where}: {piece!r}", found=f"speaks for {spoken.frames} frames",
                    expected=f"at most {len(spoken.mel)}, the largest shape",
                    fix="raise --speed, or train further: this checkpoint has not learnt durations yet",
                )  # fmt: skip
        return mels
