"""The locked training step of every model size as serialized HLO, for timing by any XLA runtime, without TensorFlow.

    python benchmarks/export_step.py [--sizes tiny small normal big] [--config OVERLAY ...] [--out DIR] [--kernels]

For each size: SIZE.hlo, the step as an unoptimised `HloModuleProto`; SIZE.npz, a batch of real shapes and lengths as
arg0 to arg3 (tokens, mel, token_length, mel_length; the other arguments are the weights and the optimizer's state, the
step's variables); and SIZE.json, which describes the files. A runtime that takes s seconds per step trains
`useful_frames / s` frames per second. With `--kernels` the step is also compiled for this machine, and the table shows
the iterations of its loops and the kernels that a step launches.
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
from reporting.report import table_lines

from xtts.shared.audio.mel_profiles import mel_profile
from xtts.shared.config import Config
from xtts.shared.config_files import load_config
from xtts.shared.text.tokenizer import CHARACTERS
from xtts.trainer.system.tensorflow_import import tensorflow_import

with tensorflow_import(compile_cache=False):
    import tensorflow as tf
    from training_parts.kernels import count_kernels

    from xtts.trainer.data.batch import Batch, make_signature
    from xtts.trainer.loop.objectives import AcousticObjective
    from xtts.trainer.loop.train_state import make_optimizer
    from xtts.trainer.loop.train_step import StepFunctions
    from xtts.trainer.model.acoustic_model import AcousticModel
    from xtts.trainer.model.conditioning import Vocabularies

SIZES = ("tiny", "small", "normal", "big")
LONGEST = (192, 872)
"""(tokens, frames) of a shape that holds every clip of LJSpeech-1.1."""
SHORTEST = 0.85
"""Part of the shape that the shortest clip of the batch fills."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sizes", nargs="+", default=SIZES, metavar="SIZE", help="files of configs/")
    parser.add_argument("--config", nargs="+", default=(), metavar="OVERLAY", help="applied to each, as gpu/h200")
    parser.add_argument("--batch-size", type=int, help="B  [default: the configuration's]")
    parser.add_argument("--tokens", type=int, default=LONGEST[0], help="L")
    parser.add_argument("--frames", type=int, default=LONGEST[1], help="T")
    parser.add_argument("--out", type=Path, default=Path("build/hlo"))
    parser.add_argument("--kernels", action="store_true", help="compile, and count loops and kernels")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    print("\n".join(table_lines([export(size, options) for size in options.sizes])))


def export(size: str, options: argparse.Namespace) -> dict[str, object]:
    """Write the files of one size; returns its row of the table."""
    config = load_config(size, overlays=options.config)
    clips = options.batch_size or config.training.batch_size
    batch, signature = make_batch(config, clips, options.tokens, options.frames)
    step, parameters = locked_step(config, batch, signature)
    hlo = step.experimental_get_compiler_ir(*batch)(stage="hlo_serialized")
    (options.out / f"{size}.hlo").write_bytes(hlo)
    np.savez_compressed(options.out / f"{size}.npz", **{f"arg{i}": part for i, part in enumerate(batch)})
    row: dict[str, object] = {
        "size": size, "parameters": parameters, "clips": clips, "tokens": options.tokens,
        "frames": options.frames, "useful_frames": int(batch.mel_length.sum()), "hlo_mb": f"{len(hlo) / 1e6:.1f}",
    }  # fmt: skip
    if options.kernels:
        counted = count_kernels(step.experimental_get_compiler_ir(*batch)(stage="optimized_hlo"))
        row["loops"] = ", ".join(f"{loop.turns} x {loop.kernels}" for loop in counted.loops)
        row["kernels"] = counted.launched
    described = row | {"mixed_precision": config.training.mixed_precision, "training": config.training.model_dump()}
    (options.out / f"{size}.json").write_text(json.dumps(described, indent=1) + "\n", encoding="utf-8")
    return row


def make_batch(config: Config, clips: int, tokens: int, frames: int) -> tuple[Batch, Batch]:
    """(NumPy arrays, signature) of B clips with lengths evenly spread over the upper part of the shape."""
    channels = mel_profile(config.audio.profile).mel_channels
    random, share = np.random.default_rng(0), np.linspace(SHORTEST, 1.0, clips)
    texts = random.integers(2, len(CHARACTERS), (clips, tokens), np.int32)
    mel = random.normal(-5.0, 2.0, (clips, frames, channels)).astype(config.shards.mel_dtype)
    lengths = ((share * longest).astype(np.int32) for longest in (tokens, frames))
    batch = Batch(texts, mel, *lengths, *np.zeros([2, clips], np.int32))
    return batch, make_signature(tokens, frames, clips, mel=config.shards.mel_dtype, channels=channels)


def locked_step(
    config: Config, batch: Batch, signature: Batch
) -> tuple[tf.types.experimental.PolymorphicFunction, int]:
    """(gradients and update as one compiled function, *batch -> float32[len(ACOUSTIC.step)]; its parameters)."""
    training = config.training
    policy = "float32" if training.mixed_precision == "float32" else "mixed_bfloat16"
    model = AcousticModel(
        config.model, Vocabularies(len(CHARACTERS)), replace(mel_profile("hifigan"), mel_channels=batch.mel.shape[2]),
        mean=-5.0, deviation=2.0, dtype_policy=policy, seed=training.seed,
    )  # fmt: skip
    optimizer = make_optimizer(model.trainable_variables, training)
    typical = float(batch.mel_length.sum()), float(batch.token_length.sum())
    counter = tf.Variable(0, dtype=tf.int64, trainable=False)
    step_functions = StepFunctions(AcousticObjective(model), optimizer, training, counter, typical=typical)
    step_functions.trace({0: signature})
    step = tf.function(
        lambda *parts: step_functions.train(0, Batch(*parts), training.learning_rate), input_signature=signature,
        jit_compile=True, autograph=False,
    )  # fmt: skip
    return step, model.parameter_count


if __name__ == "__main__":
    main()
