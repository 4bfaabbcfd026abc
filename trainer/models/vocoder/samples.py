"""Held-out recordings through the vocoder in training: sentences joined from the crops of their clips."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tensorflow as tf

from xtts.shared.audio.mel import log_mel
from xtts.shared.cache.cache_spec import CacheSpec, shard_files
from xtts.shared.cache.clip_index import IndexRow, clip_of_crop, kept_rows, read_index
from xtts.shared.cache.shard_reader import RecordReader
from xtts.shared.config import TrainingConfig
from xtts.trainer.evaluation.pictures import draw_pair
from xtts.trainer.models.samples import Samples, Shown
from xtts.trainer.models.vocoder.vocoder import Vocoder


@dataclass(frozen=True, kw_only=True)
class RecordedSentence:
    """A held-out clip, without the frames that only its last crop holds."""

    name: str
    mel: np.ndarray
    """float32[F, M], natural-log magnitude."""
    samples: np.ndarray
    """float32[S]."""


def held_out_sentences(cache: Path, spec: CacheSpec, count: int) -> list[RecordedSentence]:
    """`count` held-out clips, spread over the names."""
    clips = defaultdict[str, list[IndexRow]](list)
    for row in kept_rows(read_index(cache / spec.index_file)):
        if row.split == "validation":
            clips[clip_of_crop(row.clip.id)].append(row)
    names = sorted(clips)
    chosen = names[:: max(1, len(names) // max(count, 1))][:count]
    return [_sentence(name, clips[name], cache, spec) for name in chosen]


def _sentence(name: str, crops: list[IndexRow], cache: Path, spec: CacheSpec) -> RecordedSentence:
    files, hop = shard_files(spec), spec.mel_profile.hop_samples
    reader = RecordReader(mel_dtype=spec.mel_dtype, mel_channels=spec.mel_channels)
    rows = sorted(crops, key=lambda row: int(row.clip.id.rpartition("/")[2]))
    mels, waveforms = list[np.ndarray](), list[np.ndarray]()
    for row in rows[:-1] or rows:
        record = reader.read(cache / files[row.shard_id], row.position, row.clip.id)
        assert record.crop is not None
        mels.append(record.unpadded_mel.astype(np.float32))
        waveforms.append(record.crop.waveform[: record.mel_length * hop] / np.float32(32_768.0))
    return RecordedSentence(name=name, mel=np.concatenate(mels), samples=np.concatenate(waveforms))


class VocoderSamples(Samples):
    """See `Samples`."""

    def __init__(self, model: Vocoder, cache: Path, spec: CacheSpec, training: TrainingConfig) -> None:
        self.profile = spec.mel_profile
        self.sentences = held_out_sentences(cache, spec, training.sample_sentences)
        self._heard = training.samples_heard
        if self.empty:
            return
        self._longest = max(len(sentence.mel) for sentence in self.sentences)
        signature = [tf.TensorSpec([1, self._longest, self.profile.mel_channels])]
        self._vocode = tf.function(model.vocode, input_signature=signature, jit_compile=True, autograph=False)
        self._vocode.get_concrete_function()

    def speak(self) -> list[np.ndarray]:
        """Samples float32[S] of each sentence."""
        padded = [
            np.pad(sentence.mel, [(0, self._longest - len(sentence.mel)), (0, 0)], constant_values=self.profile.silence)
            for sentence in self.sentences
        ]
        spoken = (self._vocode(mel[np.newaxis]).numpy()[0] for mel in padded)
        return [sound[: len(sentence.samples)] for sound, sentence in zip(spoken, self.sentences, strict=True)]

    def finite(self, spoken: list[np.ndarray]) -> bool:
        """See `Samples`."""
        return all(bool(np.isfinite(samples).all()) for samples in spoken)

    def measure(self, spoken: list[np.ndarray]) -> tuple[dict[str, float], str]:
        """The mean absolute difference between the log-mels of speech and recording."""
        errors = [
            float(np.abs(log_mel(samples, self.profile) - log_mel(sentence.samples, self.profile)).mean())
            for samples, sentence in zip(spoken, self.sentences, strict=True)
        ]
        error = float(np.mean(errors))
        return {"mel_error": error}, f"{len(spoken)} sentences: mel error {error:.3f}"

    def recordings(self) -> Iterator[tuple[str, Shown]]:
        """See `Samples`."""
        for sentence in self.sentences[: self._heard]:
            yield f"recording/{sentence.name}", sentence.samples

    def show(self, spoken: list[np.ndarray]) -> Iterator[tuple[str, Shown]]:
        """See `Samples`."""
        for samples, sentence in zip(spoken, self.sentences[: self._heard], strict=False):
            mel = log_mel(samples, self.profile)
            yield f"mel/{sentence.name}", draw_pair(sentence.mel, mel, self.profile)
            yield f"speech/{sentence.name}", samples
