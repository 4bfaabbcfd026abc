"""`xtts-synth TEXT`: speak a text into a sound file. Everything is checked before the model is loaded."""

import sys
from functools import partial
from pathlib import Path

import click

from xtts.shared.errors import LockstepError, warn
from xtts.trainer.speech.encodings import MEDIA_TYPES
from xtts.trainer.speech.loaded_voice import choose_voice
from xtts.trainer.speech.long_form import Speech, encode_text
from xtts.trainer.speech.output_files import STANDARD_OUTPUT, check_file, check_folder, write_mel, write_sound
from xtts.trainer.speech.synthesis_options import SynthesisOptions
from xtts.trainer.speech.synthesizer import Runtime
from xtts.trainer.speech.word_times import SUFFIXES, write_times
from xtts.trainer.system.onnx_file import read_file


def speak(
    checkpoint: Path, options: SynthesisOptions, *, text: str | None, file: Path | None, out: Path | None,
    mel_out: Path | None, timestamps: Path | None, vocoder: str | None, speaker: str | None, language: str | None,
    speaker_wav: tuple[Path, ...], lexicon: Path | None, runtime: Runtime | None,
) -> None:  # fmt: skip
    """Speak, write, and report how long it took; the arguments are the options of the command."""
    out = _check_outputs(text, file, out, mel_out, timestamps)
    tell = partial(click.echo, err=out == STANDARD_OUTPUT)
    source, load = choose_voice(
        checkpoint, speaker=speaker, language=language, speaker_wav=speaker_wav, vocoder=vocoder, lexicon=lexicon,
        runtime=runtime, options=options, warn=warn, tell=tell,
    )  # fmt: skip
    texts = []
    for words, location, path in _read_texts(text, file, out):
        encoded, warnings = encode_text(words, source.voice, source.language(language, speaker), location)
        texts.append((encoded, path))
        for warning in warnings:
            warn(warning)
    if not texts:
        raise LockstepError(str(file), found="no lines of text")
    synthesizer = load()
    if file is not None:
        out.mkdir(exist_ok=True)
    sample_rate = source.voice.mel_profile.sample_rate
    for encoded, path in texts:
        speech = synthesizer.speak(encoded)
        write_sound(path, speech.samples, sample_rate)
        if mel_out is not None:
            write_mel(mel_out, speech.mel)
        if timestamps is not None:
            write_times(timestamps, speech.lines, len(speech.samples) / sample_rate)
        tell(_summary(path, speech, sample_rate))
    tell(f"{source.checkpoint}: {synthesizer.synthesizer.readiness()}, excluded above")


def _check_outputs(
    text: str | None, file: Path | None, out: Path | None, mel_out: Path | None, timestamps: Path | None
) -> Path:
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
    for path, option, suffixes in ((mel_out, "--mel-out", (".npy",)), (timestamps, "--timestamps", SUFFIXES)):
        if path is not None:
            if file is not None:
                raise LockstepError(option, found="together with --file", expected="one text")
            check_file(path, option, *suffixes)
    return out


def _read_texts(text: str | None, file: Path | None, out: Path) -> list[tuple[str, str, Path]]:
    """Read (text, its location, its sound file) of each text; `-` or no text means standard input."""
    if file is not None:
        lines = enumerate(_decode(read_file(file), str(file)).splitlines(), 1)
        return [(line, f"{file}:{i}", out / f"{i:04d}.wav") for i, line in lines if line.strip()]
    if text is None or text == "-":
        if sys.stdin.isatty():
            click.echo("type the text, then Ctrl-D", err=True)
        return [(_decode(sys.stdin.buffer.read(), "standard input"), "standard input", out)]
    return [(text, "TEXT", out)]


def _decode(data: bytes, location: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise LockstepError(location, found="not UTF-8 text") from None


def _summary(path: Path, speech: Speech, sample_rate: int) -> str:
    audio_seconds = max(len(speech.samples), 1) / sample_rate
    pieces = f" in {speech.pieces} pieces" if speech.pieces > 1 else ""
    return (
        f"{path}: {audio_seconds:.2f} s of audio{pieces}, {speech.seconds:.2f} s of synthesis, "
        f"first sound after {speech.first_seconds:.2f} s, real-time factor {speech.seconds / audio_seconds:.3f}"
    )
