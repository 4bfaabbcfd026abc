"""`xtts-synth TEXT`: speak a text into a sound file. Everything is checked before the model is loaded."""

import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import click

from xtts.shared.errors import LockstepError, warn
from xtts.trainer.speech.encodings import MEDIA_TYPES
from xtts.trainer.speech.loaded_voice import choose_voice
from xtts.trainer.speech.long_form import LoadedVoice, MelPiece, Text, encode_text
from xtts.trainer.speech.onnx_file import read_file
from xtts.trainer.speech.output_files import STANDARD_OUTPUT, check_file, check_folder, sound_file
from xtts.trainer.speech.synthesis_options import SynthesisOptions
from xtts.trainer.speech.voice_source import Source
from xtts.trainer.speech.word_times import write_times


def speak(
    open_voice: Callable[[], Source], options: SynthesisOptions, *, text: str | None, file: Path | None,
    out: Path | None, timestamps: Path | None, vocoder: str | None, speaker: str | None, language: str | None,
    speaker_wav: tuple[Path, ...], lexicon: Path | None,
) -> None:
    """Speak, write, and report how long it took.

    open_voice: called once the outputs are checked; the others are the options of the command.
    """
    out = _check_outputs(text, file, out, timestamps)
    tell = partial(click.echo, err=out == STANDARD_OUTPUT)
    source, load = choose_voice(
        open_voice(), speaker=speaker, language=language, speaker_wav=speaker_wav, vocoder=vocoder, lexicon=lexicon,
        options=options, warn=warn,
    )
    texts, empty = [], list[LockstepError]()
    for words, location, path in _read_texts(text, file, out):
        try:
            encoded, warnings = encode_text(words, source.voice, source.language(language, speaker), location)
        except LockstepError as error:  # a line without words, such as a row of stars
            empty.append(error)
            continue
        texts.append((encoded, path))
        for warning in warnings:
            warn(warning)
    if not texts:
        raise empty[0] if empty else LockstepError(str(file), found="no lines of text")
    for problem in empty:
        warn(str(problem))
    voice = load()
    if file is not None:
        out.mkdir(exist_ok=True)
    for encoded, path in texts:
        tell(_speak_text(voice, encoded, path, timestamps))


def _speak_text(voice: LoadedVoice, texts: Sequence[Text], path: Path, timestamps: Path | None) -> str:
    """Speak a text into its files, its sound piece by piece: a line about it."""
    began, first, pieces = time.perf_counter(), 0.0, list[MelPiece]()
    with sound_file(path, voice.sample_rate) as write:
        for piece in voice.mels(texts):
            write(voice.vocode(piece.mel), piece.last)
            first = first or time.perf_counter() - began
            pieces.append(piece.without_mel())
    spent, seconds = time.perf_counter() - began, voice.seconds(pieces)
    if timestamps is not None:
        write_times(timestamps, voice.time(texts, pieces), seconds)
    count = f" in {len(pieces)} pieces" if len(pieces) > 1 else ""
    return (
        f"{path}: {seconds:.2f} s of audio{count}, {spent:.2f} s of synthesis, first sound after {first:.2f} s, "
        f"real-time factor {spent / max(seconds, 1 / voice.sample_rate):.3f}"
    )


def _check_outputs(text: str | None, file: Path | None, out: Path | None, timestamps: Path | None) -> Path:
    """Return the sound file, or the folder of `--file`; `LockstepError` for an output that cannot be written."""
    if file is None:
        out = out or Path("out.wav")
        if out != STANDARD_OUTPUT:
            check_file(out, "-o", ".ogg", *(f".{name}" for name in MEDIA_TYPES if name != "pcm"))
    elif text is not None:
        raise LockstepError("--file", found="a TEXT as well", expected="one of them")
    elif out is None:
        raise LockstepError("--file", found="no -o", expected="-o FOLDER for 0001.wav and so on")
    else:
        check_folder(out, "-o")
    if timestamps is not None:
        if file is not None:
            raise LockstepError("--timestamps", found="together with --file", expected="one text")
        check_file(timestamps, "--timestamps", ".json")
    return out


def _read_texts(text: str | None, file: Path | None, out: Path) -> list[tuple[str, str, Path]]:
    """Read (text, its location, its sound file) of each text; `-` or no text means standard input."""
    if file is not None:
        lines = enumerate(_decode(read_file(file), str(file)).split("\n"), 1)
        return [(line, f"{file}:{i}", out / f"{i:04d}.wav") for i, line in lines if line.strip()]
    if text is None or text == "-":
        if sys.stdin is None:
            raise LockstepError("standard input", found="closed, and no TEXT", expected="a text to speak")
        if sys.stdin.isatty():
            click.echo("type the text, then Ctrl-D", err=True)
        return [(_decode(sys.stdin.buffer.read(), "standard input"), "standard input", out)]
    return [(text, "TEXT", out)]


def _decode(data: bytes, location: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise LockstepError(location, found="not UTF-8 text") from None
