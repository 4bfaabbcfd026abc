"""Four clips for the acoustic model, the third of them blank, and the model's losses of them."""

import functools
from dataclasses import replace

import numpy as np
import tensorflow as tf

from xtts.shared.audio.mel_profiles import mel_profile
from xtts.shared.audio.speaker_encoder import VOICE_SHAPE
from xtts.shared.config_files import load_config
from xtts.shared.model_config import DecoderLevel
from xtts.trainer.data.batch import Batch
from xtts.trainer.models.acoustic.acoustic_model import AcousticModel
from xtts.trainer.models.acoustic.networks import Vocabularies
from xtts.trainer.models.acoustic.objective import AcousticObjective, RandomInputs
from xtts.trainer.speech.synthesis_options import sampling_schedule

VOCABULARY, CHANNELS = 20, 16
VOICES = np.random.default_rng(2).normal(size=[4, *VOICE_SHAPE]).astype(np.float16)
EULER = tf.constant(sampling_schedule(3, "euler"))
KEYS = ("prior", "flow", "duration")
LEVEL = DecoderLevel(rate=3, width=24, blocks=1, heads=2, expansion=2)
"""Not every length is a multiple of its rate."""
TOKEN_LENGTH, MEL_LENGTH = (9, 5, 0, 7), (40, 21, 0, 33)


def sizes(name, **changes):
    return load_config(name).model.model_copy(update=changes)


@functools.cache
def small_model(speakers=1, dtype_policy="float32", seed=7, languages=1, voices=False, **changes):
    widths = {"text_width": 32, "duration_width": 24, "decoder_width": 32, "decoder_levels": [LEVEL]}
    config = sizes("tiny", **widths, decoder_blocks=2, text_blocks=1).model_copy(update=changes)
    return AcousticModel(
        config, Vocabularies(VOCABULARY, speakers=speakers, languages=languages),
        replace(mel_profile("hifigan"), mel_channels=CHANNELS), mean=-5.0, deviation=2.0, dtype_policy=dtype_policy,
        seed=seed, voices=VOICES if voices else None,
    )


def clips(tokens=10, frames=40):
    """Arguments of `loss_sums` for four clips, the third of them blank, in a bucket of this size."""
    rng = np.random.default_rng(11)
    batch = len(TOKEN_LENGTH)
    drawn = (
        rng.integers(1, VOCABULARY, size=[batch, 10]).astype(np.int32),
        (rng.normal(size=[batch, 40, CHANNELS]) * 2 - 5).astype(np.float32),
        rng.normal(size=[batch, 40, CHANNELS]).astype(np.float32), rng.uniform(size=batch).astype(np.float32),
    )
    ids, noise = np.zeros([batch, tokens], np.int32), np.zeros([batch, frames, CHANNELS], np.float32)
    mel = np.full([batch, frames, CHANNELS], np.log(1e-5), np.float32)
    for row, (n, m) in enumerate(zip(TOKEN_LENGTH, MEL_LENGTH, strict=True)):
        ids[row, :n], mel[row, :m], noise[row, :m] = drawn[0][row, :n], drawn[1][row, :m], drawn[2][row, :m]
    lengths = np.array(TOKEN_LENGTH, np.int32), np.array(MEL_LENGTH, np.int32)
    return [ids, mel, *lengths, noise, drawn[3]]


def losses(model, ids, mel, token_length, mel_length, noise, time, dropout_seed=None, speaker=None, language=None):
    objective = AcousticObjective(model)
    speaker = tf.zeros_like(mel_length) if speaker is None else speaker
    batch = Batch(ids, mel, token_length, mel_length, speaker, language)
    sums, counts = objective.loss_sums(batch, RandomInputs(noise, time, dropout_seed)), objective.counts(batch)
    return sums, tf.reduce_sum([tf.reduce_sum(sums[key]) for key in KEYS] / tf.maximum(counts, 1.0))


def step(model, *tensors):
    """(sums, loss, gradients) of `losses`."""
    with tf.GradientTape() as tape:
        sums, loss = losses(model, *tensors)
    gradients = tape.gradient(loss, model.trainable_variables)
    return sums, loss, [tf.convert_to_tensor(gradient) for gradient in gradients]


def evaluate(model, arguments):
    """`step` without XLA: compiling it takes ten times as long as running it once."""
    return tf.nest.map_structure(lambda x: x.numpy(), step(model, *map(tf.constant, arguments)))


def moved(model):
    """The model, once, its zero-initialised weights moved, so that every path carries values and gradients."""
    for i, variable in enumerate(model.trainable_variables):
        variable.assign_add(0.05 * tf.random.stateless_normal(variable.shape, [3, i]))
    return model
