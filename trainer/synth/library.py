"""Synthesis for Python programs: `from xtts.trainer.synth import evaluate_checkpoint, load_voice`."""

import warnings
from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from rich.console import Console

from xtts.shared.cache.cache_spec import Split
from xtts.shared.storage.urls import location
from xtts.shared.text.text_normalization import expand
from xtts.trainer.evaluation.figures import Figures
from xtts.trainer.evaluation.synthesis_options import SynthesisOptions
from xtts.trainer.model.sampling_schedule import Solver
from xtts.trainer.synth.engines import make_speaker
from xtts.trainer.synth.evaluate import EvaluationRequest, evaluate
from xtts.trainer.synth.input_texts import Text, check_speakable
from xtts.trainer.synth.long_texts import Narrator, Speech
from xtts.trainer.synth.reference_recording import read_recordings
from xtts.trainer.synth.speak_command import make_narrator
from xtts.trainer.synth.speaker import Engine
from xtts.trainer.synth.vocoder.vocoder import GRIFFIN_LIM, check_vocoder, make_vocoder
from xtts.trainer.synth.voice_source import open_source


class LoadedVoice:
    """A checkpoint that speaks texts; `load_voice` returns one."""

    def __init__(self, narrator: Narrator) -> None:
        self._narrator, self._voice = narrator, narrator.speaker.voice

    @property
    def sample_rate(self) -> int:
        """Hz of the samples."""
        return self._voice.mel_profile.sample_rate

    def speak(self, text: str) -> Speech:
        """Speak a text of any length; the same text sounds the same every time.

        The first text of a given shape compiles it, which takes a few seconds.

        Returns:
            `samples` float32[S] in -1 to 1 at `sample_rate`, `mel` float32[T, M] (natural logarithm of magnitudes),
            `pieces` that a long text was cut into, and the `seconds` it took, without compilation.

        Raises:
            LockstepError: Nothing in the text can be spoken. Single characters that the checkpoint does not know are
                left out with a warning.
        """
        words = expand(text, self._narrator.language) if self._voice.expand_numbers else text
        asked = Text(words=words, out=Path(), where="text")
        for warning in check_speakable([asked], self._voice.symbol_table, self._narrator.language, None):
            warnings.warn(warning, stacklevel=2)
        return self._narrator.speak(asked)


def load_voice(
    checkpoint: str | PathLike[str],
    *,
    speaker: str | None = None,
    language: str | None = None,
    speaker_wav: str | PathLike[str] | Sequence[str | PathLike[str]] | None = None,
    vocoder: str = GRIFFIN_LIM,
    steps: int = SynthesisOptions.steps,
    solver: Solver = SynthesisOptions.solver,
    temperature: float = 0.8,
    speed: float = 1.0,
    seconds: float | None = None,
    seed: int = 0,
    engine: Engine | None = None,
) -> LoadedVoice:
    """Load the averaged weights of a checkpoint to speak with, as `xtts-synth` does.

    TensorFlow is imported and configured as `xtts.trainer.train` does it, unless ONNX speaks.

    Args:
        checkpoint: A run folder, for its newest checkpoint, one checkpoint, or an exported folder.
        speaker: Speaker name, for a corpus with several (default: the first).
        language: ISO code of the language, for a corpus with several (default: the first).
        speaker_wav: Recording of the voice to imitate, or several, whose mean is taken; required for a model with voice
            latents. At least two seconds of one speaker, as wav, flac, ogg or mp3.
        vocoder: "griffinlim" or "onnx:FILE", a model from log-mel to samples.
        steps: Evaluations of the decoder's vector field (NFE): one a step of "euler", two of "midpoint".
        solver: "euler" or "midpoint".
        temperature: Standard deviation of the decoder's noise, 0 to 2.
        speed: 0.25 to 4; 2 speaks twice as fast.
        seconds: How long each text lasts, instead of a speed: 0.01 to 3600.
        seed: Key of the noise.
        engine: "tensorflow" or "onnx" (default: TensorFlow, or ONNX for an exported ONNX folder, which needs no
            TensorFlow). They draw other noise.

    Raises:
        LockstepError: A value cannot be used, the checkpoint cannot be read, or speaker, language, recording or vocoder
            do not fit it.
    """
    options = SynthesisOptions(
        steps=steps, solver=solver, temperature=temperature, speed=speed, seed=seed,
        seconds=seconds,
    )  # fmt: skip
    check_vocoder(vocoder)
    source = open_source(Path(checkpoint))
    source.speaker_number(speaker)  # raises for an unknown name
    source.language(language)
    given = [speaker_wav] if isinstance(speaker_wav, (str, PathLike)) else speaker_wav or []
    recordings = read_recordings([Path(path) for path in given], source)
    source.check_timing(options)
    to_sound = make_vocoder(vocoder, source.voice.mel_profile, warnings.warn)
    model = make_speaker(source, options, engine, tell=lambda _: None)
    narrator = make_narrator(source, model, vocoder=to_sound, name=speaker, language=language, recordings=recordings)
    return LoadedVoice(narrator)


def evaluate_checkpoint(
    checkpoint: str | PathLike[str],
    *,
    cache: str | PathLike[str] | None = None,
    split: Split = "validation",
    limit: int = 100,
    steps: int = SynthesisOptions.steps,
    solver: Solver = SynthesisOptions.solver,
    temperature: float = 0.8,
    seed: int = 0,
    quiet: bool = True,
) -> dict[str, Figures]:
    """Speak sentences of a cache and compare them with their recordings, as `xtts-synth evaluate` does.

    Args:
        checkpoint: A run folder, for its newest checkpoint, one checkpoint, or an exported folder.
        cache: Folder or URL of the cache with the sentences (default: the cache of the run).
        split: Split of the cache.
        limit: Most sentences to speak; they are compared with all recordings.
        steps: Evaluations of the decoder's vector field (NFE): one a step of "euler", two of "midpoint".
        solver: "euler" or "midpoint".
        temperature: Standard deviation of the decoder's noise, 0 to 2.
        seed: Key of the noise.
        quiet: Print no table.

    Returns:
        The `Figures` of "synthesised" and, for comparison, of "vocoded recording".

    Raises:
        LockstepError: The checkpoint or the cache cannot be used, or the split has fewer than two sentences.
    """
    options = SynthesisOptions(steps=steps, solver=solver, temperature=temperature, seed=seed)
    request = EvaluationRequest(
        checkpoint=Path(checkpoint), cache=None if cache is None else location(cache), split=split, limit=limit,
        json_file=None, options=options,
    )  # fmt: skip
    done = evaluate(request, Console(quiet=True) if quiet else None)
    return {name: figures for name, (figures, _) in done.systems.items()}
