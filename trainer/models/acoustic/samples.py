"""Fixed validation sentences, spoken at an interval with the averaged weights, to follow how the model sounds.

This does not affect training: the sentences are held in memory, and the noise has its own key.
"""

import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import tensorflow as tf

from xtts.shared.cache.cache_spec import CacheSpec
from xtts.shared.config import TrainingConfig
from xtts.shared.text.tokenizer import load_tokenizer
from xtts.trainer.data.batch import Batch, make_signature
from xtts.trainer.data.batch_sizes import validation_records
from xtts.trainer.evaluation.evaluation_clips import EvaluationClip, shard_clips
from xtts.trainer.evaluation.figures import Recordings
from xtts.trainer.evaluation.pictures import draw_alignment, draw_pair
from xtts.trainer.models.acoustic.acoustic_model import AcousticModel
from xtts.trainer.models.samples import Samples, Shown
from xtts.trainer.speech.synthesis_options import SynthesisOptions
from xtts.trainer.speech.vocoder import MelToSamples, make_vocoder

DEFAULT_OPTIONS = SynthesisOptions()
"""The defaults of `xtts-synth`."""


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A sentence as spoken and aligned by the model at some step."""

    clip: EvaluationClip
    mel: np.ndarray
    """float32[T, M], natural-log magnitude, cut off at the end of the locked shape."""
    frames: int
    """Sum of the predicted durations."""
    durations: np.ndarray
    """int32[L]: number of the recording's frames aligned to each token."""


def fixed_sentences(
    cache: Path, spec: CacheSpec, count: int, most: int | None = None
) -> tuple[int, list[EvaluationClip]]:
    """(bucket with the most clips that validation reads, at most `count` of them, in order of id).

    most: `training.validation_clips`.
    """
    read = validation_records(spec, most)
    fullest = max(range(len(spec.buckets)), key=lambda n: sum(read[n]))
    clips = list[EvaluationClip]()
    for shard, records in zip(spec.buckets[fullest].validation, read[fullest], strict=True):
        if len(clips) < count and records:
            clips += shard_clips(cache, spec, shard, records)
    return fullest, sorted(clips, key=lambda clip: clip.clip_id)[:count]


class SpokenSamples(Samples):
    """Speaks the same sentences each time, in one batch of one locked shape, compiled once."""

    def __init__(self, model: AcousticModel, cache: Path, spec: CacheSpec, training: TrainingConfig) -> None:
        self.profile, self.model = spec.mel_profile, model
        fullest, self.sentences = fixed_sentences(cache, spec, training.sample_sentences, training.validation_clips)
        self.shown = min(training.samples_heard, len(self.sentences))
        """Count of the first sentences that go to TensorBoard as audio and pictures."""
        self._tokenizer = load_tokenizer(cache / spec.tokenizer_file)
        if self.empty:
            return
        bucket = spec.buckets[fullest]
        signature = make_signature(
            bucket.tokens, bucket.frames, len(self.sentences), mel=spec.mel_dtype, channels=spec.mel_channels
        )
        self.batch = batch_of(self.sentences, signature, self.profile.silence)
        """The sentences with their recordings, in the locked shape."""
        self._speak = tf.function(self.generate, input_signature=signature, jit_compile=True, autograph=False)
        self._speak.get_concrete_function()

    def speak(self) -> list[Sample]:
        """Speak and align the sentences with the current weights; the first call compiles."""
        mels, frames, durations = (tensor.numpy() for tensor in self._speak(*self.batch))
        return [
            Sample(clip=clip, mel=mel[: min(asked, len(mel))], frames=int(asked), durations=aligned[: len(clip.ids)])
            for clip, mel, asked, aligned in zip(self.sentences, mels, frames, durations, strict=True)
        ]

    def recordings(self) -> Iterator[tuple[str, Shown]]:
        """The sentences and their vocoded recordings: the best that synthesis can sound like."""
        for clip in self.sentences[: self.shown]:
            yield f"text/{clip.clip_id}", self._tokenizer.decode(clip.ids)
            yield f"recording/{clip.clip_id}", self._vocoder(clip.mel)

    def finite(self, samples: list[Sample]) -> bool:
        """Whether all numbers of the speech are finite."""
        return all(bool(np.isfinite(sample.mel).all()) for sample in samples)

    def show(self, samples: list[Sample]) -> Iterator[tuple[str, Shown]]:
        """Pictures and sounds of the first sentences."""
        for sample in samples[: self.shown]:
            clip, profile = sample.clip, self.profile
            yield f"mel/{clip.clip_id}", draw_pair(clip.mel, sample.mel, profile)
            symbols = [self._tokenizer.symbols[i] for i in clip.ids]
            yield f"alignment/{clip.clip_id}", draw_alignment(sample.durations, clip.mel, profile, symbols)
            yield f"speech/{clip.clip_id}", self._vocoder(sample.mel)

    def measure(self, samples: list[Sample]) -> tuple[dict[str, float], str]:
        """(figures of finite speech against the recordings by name, a line that lists them)."""
        if len(self.sentences) < 2:  # the figures need a wrong recording
            return {}, "audio and pictures are in TensorBoard"
        figures, _ = self._recordings.compare([sample.mel for sample in samples], [sample.frames for sample in samples])
        return {name: value for name, value in asdict(figures).items() if value is not None}, (
            f"{len(samples)} sentences: relative MCD {figures.relative_mcd:.3f}  "
            f"Fréchet distance {figures.frechet_distance:.1f}  log-F0 error {figures.log_f0_error:.3f}  "
            f"voicing error {figures.voicing_error:.1%}  duration error {figures.duration_error:.1%}"
        )

    @cached_property
    def _vocoder(self) -> MelToSamples:
        return make_vocoder(None, self.profile, warnings.warn)

    @cached_property
    def _recordings(self) -> Recordings:
        return Recordings(self.sentences, range(len(self.sentences)), self.profile)

    def generate(self, *tensors: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """(mel float32[B, T, M], mel_length int32[B], durations int32[B, L] of the recordings)."""
        batch = Batch(*tensors)
        durations = self.model.align_clips(batch, None).durations
        noise = tf.random.stateless_normal(batch.mel.shape, [DEFAULT_OPTIONS.seed, 0])
        mel, frames, _ = self.model.generate(
            batch.tokens,
            batch.token_length,
            noise=noise,
            schedule=tf.constant(DEFAULT_OPTIONS.schedule),
            temperature=tf.constant(DEFAULT_OPTIONS.temperature),
            speed=tf.constant(DEFAULT_OPTIONS.speed),
            conditioning=self.model.conditioning_of(batch),
        )
        return mel, frames, durations


def batch_of(clips: list[EvaluationClip], signature: Batch, silence: float) -> Batch:
    """The clips as a `Batch` with the given signature."""
    tokens = np.zeros(signature.tokens.shape, np.int32)
    mel = np.full(signature.mel.shape, silence, signature.mel.dtype.as_numpy_dtype)
    for row, clip in enumerate(clips):
        tokens[row, : len(clip.ids)] = clip.ids
        mel[row, : len(clip.mel)] = clip.mel
    return Batch(
        tokens=tf.constant(tokens),
        mel=tf.constant(mel),
        token_length=tf.constant([len(clip.ids) for clip in clips]),
        mel_length=tf.constant([len(clip.mel) for clip in clips]),
        speaker=tf.constant([clip.speaker for clip in clips]),
        language=tf.constant([clip.language for clip in clips]),
    )
