"""The locked training step of a configuration with a synthetic batch, to time it without a corpus."""

from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from xtts.shared.audio.mel_profiles import mel_profile
from xtts.shared.config import Config
from xtts.shared.text.tokenizer import CHARACTERS
from xtts.trainer.data.batch import Batch, make_signature
from xtts.trainer.engine.optimizer import AdamW
from xtts.trainer.engine.train_state import dtype_policy
from xtts.trainer.engine.train_step import Steps
from xtts.trainer.model.acoustic_model import AcousticModel, MelScale
from xtts.trainer.model.conditioning import Vocabularies
from xtts.trainer.model.weight_groups import decays

LONGEST = (192, 872)
"""(tokens, frames) of a shape that holds every clip of LJSpeech-1.1."""


@dataclass(frozen=True, kw_only=True)
class LockedStep:
    """The step of bucket 0, and a batch for it."""

    steps: Steps
    signature: Batch
    batch: Batch
    """NumPy arrays."""

    def whole(self) -> tf.types.experimental.PolymorphicFunction:
        """Gradients and update as one compiled function: *batch -> float32[len(TRAIN_METRICS)]."""
        return tf.function(
            lambda *parts: self.steps.train(0, Batch(*parts)),
            input_signature=self.signature,
            jit_compile=True,
            autograph=False,
        )

    @property
    def useful_frames(self) -> int:
        """Frames of the batch that are not padding."""
        return int(self.batch.mel_length.sum())


def build_step(config: Config, *, clips: int, shape: tuple[int, int] = LONGEST, shortest: float = 0.85) -> LockedStep:
    """A model, its optimizer, and B clips with lengths evenly spread from `shortest` to the whole of the shape."""
    tokens, frames = shape
    channels = mel_profile(config.audio.profile).mel_channels
    training = config.training
    model = AcousticModel(
        config.model, Vocabularies(len(CHARACTERS)), MelScale(channels, mean=-5.0, deviation=2.0),
        dtype_policy=dtype_policy(training), seed=training.seed,
    )  # fmt: skip
    optimizer = AdamW(model.trainable_variables, training, decays)
    random, share = np.random.default_rng(0), np.linspace(shortest, 1.0, clips)
    batch = Batch(
        random.integers(2, len(CHARACTERS), (clips, tokens), np.int32),
        random.normal(-5.0, 2.0, (clips, frames, channels)).astype(config.shards.mel_dtype),
        (share * tokens).astype(np.int32),
        (share * frames).astype(np.int32),
        *np.zeros([2, clips], np.int32),
    )
    signature = make_signature(tokens, frames, clips, mel=config.shards.mel_dtype, channels=channels)
    step = tf.Variable(0, dtype=tf.int64, trainable=False)
    typical = float(batch.mel_length.sum()), float(batch.token_length.sum())
    steps = Steps(model, optimizer, training, step, typical=typical)
    steps.trace({0: signature})
    return LockedStep(steps=steps, signature=signature, batch=batch)
