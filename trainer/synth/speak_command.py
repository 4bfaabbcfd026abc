"""`xtts-synth TEXT`: checks everything before it loads the model."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from xtts.shared.errors import LockstepError, warn
from xtts.shared.text.text_normalization import expand
from xtts.trainer.evaluation.synthesis_options import SynthesisOptions
from xtts.trainer.synth.engines import make_speaker
from xtts.trainer.synth.input_texts import Text, check_speakable, read_texts
from xtts.trainer.synth.long_texts import Narrator, Speech
from xtts.trainer.synth.output_files import check_file, check_folder, write_mel, write_wav
from xtts.trainer.synth.reference_recording import read_recordings
from xtts.trainer.synth.speaker import Engine, Speaker
from xtts.trainer.synth.vocoder.vocoder import Vocoder, check_vocoder, make_vocoder
from xtts.trainer.synth.voice_source import Source, open_source


@dataclass(frozen=True, kw_only=True)
class Request:
    """A request to speak."""

    checkpoint: Path
    words: str | None
    file: Path | None
    out: Path
    mel_out: Path | None
    vocoder: str
    speaker: str | None
    language: str | None
    speaker_wav: tuple[Path, ...]
    """References, whose mean is the voice."""
    options: SynthesisOptions
    engine: Engine | None = None
    """By default that of the folder."""


def speak(request: Request) -> None:
    """Speak, write, and report how long it took."""
    source, texts, recordings = _prepare(request)
    vocoder = make_vocoder(request.vocoder, source.voice.mel_profile, warn)
    speaker = make_speaker(source, request.options, request.engine, tell=print)
    narrator = make_narrator(source, speaker, vocoder=vocoder, name=request.speaker, language=request.language,
                             recordings=recordings)  # fmt: skip
    if request.file is not None:
        request.out.mkdir(exist_ok=True)
    sample_rate = source.voice.mel_profile.sample_rate
    for text in texts:
        speech = narrator.speak(text)
        write_wav(text.out, speech.samples, sample_rate)
        if request.mel_out is not None:
            write_mel(request.mel_out, speech.mel)
        print(_line(text, speech, sample_rate), flush=True)
    print(f"{source.checkpoint}: {speaker.readiness()}, not counted above")


def _prepare(request: Request) -> tuple[Source, list[Text], list[np.ndarray]]:
    check_vocoder(request.vocoder)
    if request.file is None:
        check_file(request.out, ".wav", "-o")
    elif request.words is not None:
        raise LockstepError("--file", found="a TEXT as well", expected="one of them")
    else:
        check_folder(request.out, "-o")
    if request.mel_out is not None:
        if request.file is not None:
            raise LockstepError("--mel-out", found="together with --file", expected="one text")
        check_file(request.mel_out, ".npy", "--mel-out")
    source = open_source(request.checkpoint)
    source.check_timing(request.options)
    source.speaker_number(request.speaker)
    language = source.language(request.language)
    recordings = read_recordings(request.speaker_wav, source)
    texts = read_texts(request.words, request.file, request.out)
    if source.voice.expand_numbers:
        texts = [replace(text, words=expand(text.words, language)) for text in texts]
    for warning in check_speakable(texts, source.voice.symbol_table, language, request.file):
        warn(warning)
    return source, texts, recordings


def make_narrator(
    source: Source, speaker: Speaker, *, vocoder: Vocoder, name: str | None, language: str | None,
    recordings: Sequence[np.ndarray],
) -> Narrator:  # fmt: skip
    """A narrator for the voice `name`; recordings: reference log-mels float32[T, M], for a model with voice latents."""
    if recordings:
        speaker.encode_reference(*recordings)
    return Narrator(speaker, vocoder, speaker_number=source.speaker_number(name), language=source.language(language))


def _line(text: Text, speech: Speech, sample_rate: int) -> str:
    audio_seconds = max(len(speech.samples), 1) / sample_rate
    pieces = f" in {speech.pieces} pieces" if speech.pieces > 1 else ""
    return (
        f"{text.out}: {audio_seconds:.2f} s of audio{pieces}, {speech.seconds:.2f} s of synthesis, "
        f"first sound after {speech.first_seconds:.2f} s, real-time factor {speech.seconds / audio_seconds:.3f}"
    )
