"""Whisper's ear (extra `transcribe`): its words beside a prompt, and one long recording cut at the prompts."""

import importlib
import queue
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import cached_property
from pathlib import Path

import numpy as np
import soundfile
from starlette.requests import Request

from xtts.shared.audio.decode import AudioProblem
from xtts.shared.audio.other_formats import decode_by_ffmpeg
from xtts.shared.audio.recogniser import Interval, Recogniser, at_16_khz
from xtts.shared.errors import LockstepError
from xtts.trainer.record.prompts import phonemes
from xtts.trainer.record.takes import Takes
from xtts.trainer.web.requests import RequestError

_MOST_BYTES = 2**30
_PART_SECONDS = 300
"""Seconds in which speech is detected together."""
_PAUSE = 0.6
"""Seconds of a pause that ends a piece; a prompt may be of up to `_MOST_PIECES`."""
_MOST_PIECES = 3
ALIKE = 0.6
"""Share of phonemes in common from which words are a prompt's."""
_EDGE = 0.4


class Ear:
    """Whisper, loaded when first needed."""

    def __init__(self, language: str, asr: str = "base") -> None:
        """asr: a size of Whisper that is downloaded, or a folder with one."""
        self.language, self._asr, self._alone = language, asr, threading.Lock()

    @cached_property
    def recogniser(self) -> Recogniser:
        """The models; `LockstepError` where the extra or the weights are missing."""
        return Recogniser(self._asr, self.language)

    @property
    def is_here(self) -> bool:
        """Whether the weights are on this machine already."""
        if Path(self._asr).is_dir():
            return True
        try:
            importlib.import_module("faster_whisper").download_model(self._asr, local_files_only=True)
        except (ImportError, OSError, ValueError, RuntimeError):
            return False
        return True

    def words(self, samples: np.ndarray, rate: int) -> str:
        """Transcribe samples int16[S]."""
        with self._alone:
            return self.recogniser.transcribe(at_16_khz(samples, rate), self.language)[0]


class Listener:
    """Transcribes new takes in a thread, if Whisper is on this machine; what it has heard is a hint, kept nowhere."""

    def __init__(self, ear: Ear) -> None:
        self._ear, self._heard = ear, dict[int, tuple[int, str]]()
        self._waiting = queue.Queue[tuple[int, int, np.ndarray, int]]()
        threading.Thread(target=self._listen, daemon=True).start()

    def add(self, number: int, version: int, samples: np.ndarray, rate: int) -> None:
        """Let a take be heard; version: the time of its file."""
        self._waiting.put((number, version, samples, rate))

    def heard(self, number: int, version: int) -> str:
        """Return the words of a take; empty as long as they are unknown."""
        known = self._heard.get(number)
        return known[1] if known and known[0] == version else ""

    def _listen(self) -> None:
        while self._ear.is_here:
            number, version, samples, rate = self._waiting.get()
            self._heard[number] = version, self._ear.words(samples, rate)


def likeness(words: str, prompt: str, language: str) -> float:
    """Return the share of phonemes that two texts have in common, in order, from 0 to 1."""
    return _likeness(phonemes(words, language), phonemes(prompt, language))


def _likeness(heard: Sequence[str], wanted: Sequence[str]) -> float:
    matcher = SequenceMatcher(None, heard, wanted, autojunk=False)
    bound = min(matcher.real_quick_ratio(), matcher.quick_ratio())
    return matcher.ratio() if bound >= ALIKE else bound


@dataclass(frozen=True, kw_only=True)
class PhoneState:
    """How far the cutting of a long recording is."""

    phase: str = "none"
    """One of: none, cutting, done, failed."""
    heard: int = 0
    pieces: int = 0
    numbers: Sequence[int] = ()
    """Takes that were cut from it."""
    error: str = ""


class PhoneRecording:
    """One long recording of many prompts in any order, as a phone makes it."""

    def __init__(self, takes: Takes, ear: Ear) -> None:
        self.takes, self.ear, self.state = takes, ear, PhoneState()

    async def receive(self, request: Request) -> Path:
        """Write the body to a temporary file of the folder; `RequestError` while another recording is being cut."""
        if self.state.phase == "cutting":
            raise RequestError(409, "another recording is being cut; wait for it")
        with tempfile.NamedTemporaryFile(dir=self.takes.folder, prefix=".phone-", delete=False) as file:
            path, size = Path(file.name), 0
            try:
                async for data in request.stream():
                    if (size := size + len(data)) > _MOST_BYTES:
                        raise RequestError(413, f"more than {_MOST_BYTES:,} bytes; record it in parts")
                    file.write(data)
            except BaseException:
                path.unlink()
                raise
        return path

    def begin(self, path: Path) -> None:
        """Cut the file in a thread, and remove it."""
        self.state = PhoneState(phase="cutting")
        threading.Thread(target=self._cut, args=(path,), daemon=True).start()

    def _cut(self, path: Path) -> None:
        try:
            numbers = self.cut(path)
            self.state = replace(self.state, phase="done", numbers=sorted(numbers))
        except (LockstepError, AudioProblem, OSError) as error:
            self.state = replace(self.state, phase="failed", error=str(error))
        finally:
            path.unlink(missing_ok=True)

    def cut(self, path: Path) -> list[int]:
        """Store a take for every prompt that is heard in a file; return their numbers."""
        samples, rate = _read_sound(path)
        recogniser, language = self.ear.recogniser, self.ear.language
        speech = list[Interval]()
        for offset in range(0, len(samples), _PART_SECONDS * rate):
            part = at_16_khz(samples[offset : offset + _PART_SECONDS * rate], rate)
            speech += [(offset / rate + first, offset / rate + last) for first, last in recogniser.speech(part)]
        pieces, words = _pieces(speech), list[str]()
        for first, last in pieces:
            self.state = replace(self.state, heard=len(words), pieces=len(pieces))
            words.append(self.ear.words(samples[round(first * rate) : round(last * rate)], rate))
        spans = match_prompts(words, self.takes.prompts, lambda text: phonemes(text, language))
        numbers = list[int]()
        for text, (first_piece, last_piece) in spans.items():
            before = pieces[first_piece - 1][1] if first_piece else 0.0
            after = pieces[last_piece + 1][0] if last_piece + 1 < len(pieces) else len(samples) / rate
            start, end = pieces[first_piece][0], pieces[last_piece][1]
            start, end = start - min(_EDGE, (start - before) / 2), end + min(_EDGE, (after - end) / 2)
            numbers.append(self.takes.store(text, samples[round(start * rate) : round(end * rate)], rate))
        return numbers


def _read_sound(path: Path) -> tuple[np.ndarray, int]:
    """Decode a file of any length: (int16[S], the mean of its channels, rate in Hz)."""
    try:
        samples, rate = soundfile.read(path, dtype="int16", always_2d=True)
        return samples.mean(axis=1, dtype=np.float32).astype(np.int16), rate
    except soundfile.LibsndfileError:
        decoded, rate = decode_by_ffmpeg(path, "the recording")
        return np.asarray(np.clip(decoded * 32768, -32768, 32767), np.int16), rate


def _pieces(speech: Sequence[Interval]) -> list[Interval]:
    """Join intervals between which there is hardly a pause."""
    pieces = list[Interval]()
    for start, end in speech:
        if pieces and start - pieces[-1][1] < _PAUSE:
            pieces[-1] = pieces[-1][0], end
        else:
            pieces.append((start, end))
    return pieces


def match_prompts(
    words: Sequence[str], prompts: Sequence[str], sounds: Callable[[str], list[str]]
) -> dict[str, tuple[int, int]]:
    """Find prompts among the words of pieces: for each the first and the last of its pieces.

    The best matches come first, and of equal ones the later: who slips reads again. sounds: a text's phonemes.
    """
    wanted, heard = {prompt: sounds(prompt) for prompt in prompts}, [sounds(text) for text in words]
    matches = list[tuple[float, int, int, str]]()
    for first in range(len(words)):
        for last in range(first, min(first + _MOST_PIECES, len(words))):
            joined = [sound for piece in heard[first : last + 1] for sound in piece]
            like = max(((_likeness(joined, sound), prompt) for prompt, sound in wanted.items()), default=(0.0, ""))
            if joined and like[0] >= ALIKE:
                matches.append((like[0], first, last, like[1]))
    spans, free = dict[str, tuple[int, int]](), [True] * len(words)
    for _, first, last, prompt in sorted(matches, reverse=True):
        if prompt not in spans and all(free[first : last + 1]):
            spans[prompt] = first, last
            free[first : last + 1] = [False] * (last + 1 - first)
    return spans
