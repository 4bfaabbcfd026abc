"""A voice that is chosen, checked and loaded: `from xtts.trainer import load_voice`."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path

from xtts.shared.audio.speaker_encoder import recorded_voice
from xtts.shared.text.pronunciation import read_lexicon
from xtts.trainer.speech.long_form import LoadedVoice
from xtts.trainer.speech.reference_recordings import read_recordings
from xtts.trainer.speech.synthesis_options import SynthesisOptions
from xtts.trainer.speech.synthesizer import load_synthesizer
from xtts.trainer.speech.vocoder import check_vocoder, make_vocoder
from xtts.trainer.speech.voice_source import Source, open_source


def load_voice(
    folder: str | PathLike[str],
    *,
    speaker: str | None = None,
    language: str | None = None,
    speaker_wav: str | PathLike[str] | Sequence[str | PathLike[str]] | None = None,
    vocoder: str | None = None,
    lexicon: str | PathLike[str] | None = None,
    **synthesis: object,
) -> LoadedVoice:
    """Load an exported voice to speak with, as `xtts-synth` does.

    Args:
        folder: A folder of `xtts-synth export --format onnx`, such as the voice/ of a run.
        speaker: Speaker name, for a voice with several (default: the first, of the language if that is given).
        language: ISO code of the language, for a voice with several (default: the speaker's).
        speaker_wav: Recording of the voice to imitate, or several; required for a model that
            imitates. At least two seconds of one speaker, as wav, flac, ogg or mp3; m4a, webm and others with the extra
            `transcribe`.
        vocoder: "griffinlim" or "onnx:FILE", a model from log-mel to samples (default: the voice's own; without one,
            ours for mel profile hifigan, "griffinlim" for others).
        lexicon: File with lines of a word, a tab, and [[phonemes]] or a respelling, preferred to the voice's readings.
        synthesis: The fields of `SynthesisOptions`: nfe, solver, temperature, seed, speed, loudness.

    Raises:
        LockstepError: A value cannot be used, the voice cannot be read, or speaker, language, recording or vocoder
            do not fit it.
    """
    options = SynthesisOptions(**synthesis)
    recordings = [speaker_wav] if isinstance(speaker_wav, (str, PathLike)) else speaker_wav or []
    _, load = choose_voice(
        open_source(Path(folder)), speaker=speaker, language=language, speaker_wav=[Path(path) for path in recordings],
        vocoder=vocoder, lexicon=None if lexicon is None else Path(lexicon), options=options, warn=warnings.warn,
    )
    return load()


def choose_voice(
    source: Source, *, speaker: str | None, language: str | None, speaker_wav: Sequence[Path], vocoder: str | None,
    lexicon: Path | None, options: SynthesisOptions, warn: Callable[[str], None],
) -> tuple[Source, Callable[[], LoadedVoice]]:
    """Check a choice of voice before its graph is loaded: (the source with its lexicon, what loads vocoder and graph).

    Arguments and errors are those of `load_voice`; warn: receives doubts about vocoder and recordings.
    """
    check_vocoder(vocoder)
    if lexicon is not None:
        words = read_lexicon(lexicon, source.voice.tokenizer.kind)
        source = replace(source, voice=source.voice.with_lexicon(words))
    code = source.language(language, speaker)
    row = source.speaker_row(speaker, code)
    recordings = read_recordings(speaker_wav, source)

    def load() -> LoadedVoice:
        loaded_vocoder = make_vocoder(vocoder, source.voice.mel_profile, warn, voice=source.folder, clip=False)
        synthesizer = load_synthesizer(source, options)
        if recordings:
            synthesizer.set_voice(recorded_voice(recordings, warn))
        voice = LoadedVoice(synthesizer, loaded_vocoder, speaker=row, language=code)
        voice.measure()
        return voice

    return source, load
