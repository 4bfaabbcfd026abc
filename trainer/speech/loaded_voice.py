"""A voice that is chosen, checked and loaded: `from xtts.trainer import load_voice`."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path

from xtts.shared.audio.speaker_encoder import recorded_voice
from xtts.shared.text.pronunciation import read_lexicon
from xtts.trainer.speech.long_form import LongFormSynthesizer, Speech, encode_text
from xtts.trainer.speech.runtimes import make_synthesizer
from xtts.trainer.speech.synthesis_options import SynthesisOptions
from xtts.trainer.speech.synthesizer import Runtime
from xtts.trainer.speech.vocoder import check_vocoder, make_vocoder
from xtts.trainer.speech.voice_source import Source, open_source, read_recordings


class LoadedVoice:
    """A checkpoint that speaks texts; `load_voice` returns one."""

    def __init__(self, synthesizer: LongFormSynthesizer) -> None:
        self._synthesizer, self._voice = synthesizer, synthesizer.voice

    @property
    def sample_rate(self) -> int:
        """Hz of the samples."""
        return self._voice.mel_profile.sample_rate

    def speak(self, text: str) -> Speech:
        """Speak a text of any length; the same text sounds the same every time.

        The first text of a given shape compiles it, which takes a few seconds.

        Returns:
            `samples` float32[S] in -1 to 1 at `sample_rate`, `mel` float32[T, M] (natural logarithm of magnitudes),
            `words` of the text with their times, also as `lines` of a sentence each, the number of `pieces` that the
            text was split into, and the `seconds` it took, without compilation.

        Raises:
            LockstepError: Nothing in the text can be spoken, or a pause or tag of SSML cannot be read. Single
                characters and tags that the checkpoint does not know are skipped with a warning.
        """
        texts, doubts = encode_text(text, self._voice, self._synthesizer.language, "text")
        for warning in doubts:
            warnings.warn(warning, stacklevel=2)
        return self._synthesizer.speak(texts)


def load_voice(
    checkpoint: str | PathLike[str],
    *,
    speaker: str | None = None,
    language: str | None = None,
    speaker_wav: str | PathLike[str] | Sequence[str | PathLike[str]] | None = None,
    vocoder: str | None = None,
    lexicon: str | PathLike[str] | None = None,
    runtime: Runtime | None = None,
    **synthesis: object,
) -> LoadedVoice:
    """Load the averaged weights of a checkpoint to speak with, as `xtts-synth` does.

    TensorFlow is imported and configured as `xtts.trainer.train` does it, where it speaks or exports the graph.

    Args:
        checkpoint: A run folder, for its newest checkpoint, one checkpoint, or an exported folder.
        speaker: Speaker name, for a corpus with several (default: the first, of the language if that is given).
        language: ISO code of the language, for a corpus with several (default: the speaker's).
        speaker_wav: Recording of the voice to imitate, or several; required for a model that
            imitates. At least two seconds of one speaker, as wav, flac, ogg or mp3; m4a, webm and others with the extra
            `transcribe`.
        vocoder: "griffinlim" or "onnx:FILE", a model from log-mel to samples (default: the voice's own; without one,
            ours for mel profile hifigan, "griffinlim" for others).
        lexicon: File with lines of a word, a tab, and [[phonemes]] or a respelling, preferred to the voice's readings.
        runtime: "onnx" or "tensorflow" (default: ONNX; TensorFlow to imitate a recording). They draw different noise.
        synthesis: The fields of `SynthesisOptions`: nfe, solver, temperature, seed, speed, seconds, loudness.

    Raises:
        LockstepError: A value cannot be used, the checkpoint cannot be read, or speaker, language, recording or vocoder
            do not fit it.
    """
    options = SynthesisOptions(**synthesis)
    recordings = [speaker_wav] if isinstance(speaker_wav, (str, PathLike)) else speaker_wav or []
    _, load = choose_voice(
        Path(checkpoint), speaker=speaker, language=language, speaker_wav=[Path(path) for path in recordings],
        vocoder=vocoder, lexicon=None if lexicon is None else Path(lexicon), runtime=runtime, options=options,
        warn=warnings.warn, tell=lambda _: None,
    )  # fmt: skip
    return LoadedVoice(load())


def choose_voice(
    checkpoint: Path, *, speaker: str | None, language: str | None, speaker_wav: Sequence[Path], vocoder: str | None,
    lexicon: Path | None, runtime: Runtime | None, options: SynthesisOptions, warn: Callable[[str], None],
    tell: Callable[[str], None],
) -> tuple[Source, Callable[[], LongFormSynthesizer]]:  # fmt: skip
    """Check a choice of voice before its model is loaded: (its source, function that loads vocoder and model).

    Arguments and errors are those of `load_voice`; warn: receives doubts about vocoder and recordings, tell: a line
    before long work.
    """
    check_vocoder(vocoder)
    source = open_source(checkpoint)
    if lexicon is not None:
        words = read_lexicon(lexicon, source.voice.tokenizer.kind)
        source = replace(source, voice=source.voice.with_lexicon(words))
    code = source.language(language, speaker)
    row = source.speaker_row(speaker, code)
    recordings = read_recordings(speaker_wav, source)

    def load() -> LongFormSynthesizer:
        loaded_vocoder = make_vocoder(vocoder, source.voice.mel_profile, warn, voice=source.checkpoint, clip=False)
        synthesizer = make_synthesizer(source, options, runtime, tell)
        if recordings:
            synthesizer.set_voice(recorded_voice(recordings, warn))
        speaking = LongFormSynthesizer(synthesizer, loaded_vocoder, speaker=row, language=code)
        speaking.measure()
        return speaking

    return source, load
