"""Export as a SavedModel, which stock TensorFlow runs alone: one signature for each shape of the cache."""

from functools import partial
from pathlib import Path

from xtts.shared.cache.bucket_shapes import BucketShape
from xtts.trainer.speech.synthesis_options import SynthesisOptions
from xtts.trainer.speech.voice_source import Source
from xtts.trainer.system.tensorflow_import import tensorflow_import

MODEL_FOLDER = "model"


def signature_name(shape: BucketShape) -> str:
    """Name of a shape's signature, by its tokens and frames."""
    return f"speak_{shape.tokens}_{shape.frames}"


def save_model(source: Source, folder: Path, *, options: SynthesisOptions) -> str:
    """Write one signature for each shape; `serving_default` is the largest. Returns a description of the model.

    options: only nfe and solver count, both fixed in the program.

    tokens: int32[1, L] padded with 0, token_length: int32[1], temperature and speed: float32[], seed: int32[2],
    wanted_frames: int32[1], 0 for what the durations sum up to (, speaker: int32[1]) (, voice: float32[1, 256])
    (, language: int32[1]) -> mel: float32[1, T, M], natural-log magnitude, mel_length: int32[1], more than T if the
    shape was too short, and durations: int32[1, L], frames of each token. `voice` is that of `recorded_voice`.
    """
    with tensorflow_import(shares_gpu=True):
        import tensorflow as tf

        from xtts.trainer.speech.tensorflow_synthesizer import generate_signature, generator, load_model

    model = load_model(source)
    module = tf.Module()
    module.weights = list(model.trainable_variables)
    signatures, schedule = {}, tf.constant(options.schedule)
    for shape in source.voice.shapes:
        generate = partial(generator(model, shape.frames, source.conditioning), schedule)
        speak = tf.function(generate, input_signature=generate_signature(source, shape.tokens))
        signatures[signature_name(shape)] = speak.get_concrete_function()
    signatures["serving_default"] = signatures[signature_name(source.voice.shapes[-1])]
    tf.saved_model.save(module, str(folder / MODEL_FOLDER), signatures)
    shapes = ", ".join(f"{signature_name(shape)} ({shape.frames} frames)" for shape in source.voice.shapes)
    return f"a SavedModel; signatures: {shapes}"
