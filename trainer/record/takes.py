"""Takes on the disk: `wavs/0001.wav` and `metadata.csv`, an ordinary corpus, each file written whole."""

import io
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import soundfile

from xtts.shared.audio.decode import AudioProblem, read_recording
from xtts.shared.audio.signal_quality import measure_signal
from xtts.shared.errors import LockstepError, read_text
from xtts.shared.system import atomic_files

_KEPT_SILENCE = 0.4
"""Most seconds of silence that stay before and after the speech."""
_LOWEST_RATE = 44_100


def read_wav(data: bytes) -> tuple[np.ndarray, int]:
    """Read a wav of the page: (int16[S], rate in Hz); `LockstepError` for anything but one channel of 16 bits."""
    try:
        recording = read_recording(data)
    except AudioProblem as problem:
        raise LockstepError("recording", found=str(problem)) from None
    header, samples = recording.header, recording.samples
    if samples.dtype != np.int16 or header.channels > 1 or header.rate < _LOWEST_RATE:
        kind = f"{samples.dtype}, {header.channels} channels, {header.rate} Hz"
        raise LockstepError("recording", found=kind, expected=f"int16, one channel, {_LOWEST_RATE} Hz or more")
    return samples[:, 0], header.rate


def trimmed(samples: np.ndarray, rate: int) -> np.ndarray:
    """Return samples int16[S] with at most 0.4 s of silence at both ends."""
    quality = measure_signal(samples / np.float32(32768), rate)
    if quality is None:
        return samples
    before, after = (
        max(0, round((silence - _KEPT_SILENCE) * rate))
        for silence in (quality.leading_silence, quality.trailing_silence)
    )
    return samples[before : len(samples) - after] if before + after < len(samples) else samples


class Takes:
    """The takes of a folder. Nothing about them is kept elsewhere, so that a restart finds all."""

    def __init__(self, folder: Path, prompts: Sequence[str]) -> None:
        """prompts: in the order to record; a new take has its prompt's number, or the next if that is another's."""
        self.folder, self.prompts = folder, list(prompts)
        self._metadata, self._writing = folder / "metadata.csv", threading.Lock()

    def wav(self, number: int) -> Path:
        """Return the path of a take."""
        return self.folder / "wavs" / f"{number:04d}.wav"

    def texts(self) -> dict[int, str]:
        """Return the text of every take whose recording is there, by its number."""
        pairs = (line.split("|")[:2] for line in self._lines() if "|" in line)
        numbered = {int(name): text.strip() for name, text in pairs if name.isascii() and name.isdigit()}
        return {number: text for number, text in numbered.items() if self.wav(number).is_file()}

    def store(self, text: str, samples: np.ndarray, rate: int) -> int:
        """Write a take of a prompt, in place of its earlier one, and return its number when it is on the disk.

        samples: int16[S]. Raises `LockstepError` for a text that is no prompt, `OSError` if the disk refuses.
        """
        if text not in self.prompts:
            raise LockstepError("prompt", found=f"{text!r:.80} is not among the prompts", fix="reload the page")
        soundfile.write(file := io.BytesIO(), trimmed(samples, rate), rate, format="WAV", subtype="PCM_16")
        with self._writing:  # two tabs take turns
            taken = {int(line.partition("|")[0]): line for line in self._lines() if line.partition("|")[0].isdigit()}
            number = self.prompts.index(text) + 1
            own = [other for other, line in taken.items() if line.split("|")[1:2] == [text]]
            if own or number in taken:
                number = own[0] if own else max(*taken, len(self.prompts)) + 1
            self.wav(number).parent.mkdir(parents=True, exist_ok=True)
            atomic_files.write(self.wav(number), file.getvalue())
            if not own:
                self._write({number: f"{number:04d}|{text}"})
        return number

    def remove(self, number: int) -> None:
        """Remove a take: first its line, so that no line is without a recording."""
        with self._writing:
            self._write({number: ""})
            self.wav(number).unlink(missing_ok=True)

    def _lines(self) -> list[str]:
        """Return the lines of `metadata.csv`, also those that a person added."""
        return read_text(self._metadata).splitlines() if self._metadata.exists() else []

    def _write(self, changed: Mapping[int, str]) -> None:
        """Write `metadata.csv` with these lines in place of those of the same numbers, in their order."""
        names = {f"{number:04d}" for number in changed}
        kept = [line for line in self._lines() if line.partition("|")[0] not in names]
        lines = sorted([*kept, *filter(None, changed.values())], key=lambda line: line.partition("|")[0])
        atomic_files.write(self._metadata, "".join(f"{line}\n" for line in lines).encode())
