"""The training of a vocoder on recordings: here, or exported as HLO for a GPU without TensorFlow.

    python benchmarks/vocoder_training.py CACHE=DATA [CACHE=DATA ...] --out DIR [--steps N]
    python benchmarks/vocoder_training.py CACHE=DATA [CACHE=DATA ...] --out DIR --export
    python benchmarks/run_hlo.py DIR --seconds 140                             # where JAX and a GPU are
    python benchmarks/vocoder_training.py --out DIR --weights DIR/weights.npz

CACHE is a cache of the corpus in the folder DATA; its held-out clips are left out. DIR gets `weights.npz` and
`vocoder.onnx`, which goes into the folder of an exported voice. With `--export` it gets the locked step, its variables
and the recordings instead; `--weights` makes `vocoder.onnx` of what `run_hlo.py` trained.
"""

import argparse
import json
import math
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from xtts.shared.audio.decode import Segment, read_recording
from xtts.shared.audio.mel_profiles import mel_profile
from xtts.shared.audio.pitch import track_pitch
from xtts.shared.cache.cache_spec import load_spec
from xtts.shared.cache.clip_index import kept_rows, read_index
from xtts.shared.config import TrainingConfig
from xtts.shared.model_config import VocoderConfig
from xtts.trainer.system.tensorflow_import import tensorflow_import

with tensorflow_import(compile_cache=False):
    import tensorflow as tf

    from xtts.trainer.data.audio_mel import log_mel
    from xtts.trainer.engine.optimizer import AdamW
    from xtts.trainer.engine.train_state import decays
    from xtts.trainer.model.vocoder import LOSS_WEIGHTS, LOSSES, Crops, Vocoder
    from xtts.trainer.synth.export.onnx_graph import vocoder_graph

PROFILE = mel_profile("hifigan")
TRAINING = TrainingConfig(adam_beta1=0.8, adam_beta2=0.99, weight_decay=1e-3, ema_decay=0.999)
PEAK, WARMUP_STEPS, DECAY = 1e-3, 500, 0.4
"""Learning rate, and the share of the training, its last, in which it decays by a cosine to 5%."""
MEAN, DEVIATION = -5.9, 2.3
"""Of the mels of both shipped speakers."""


class Recordings(NamedTuple):
    """Clips one after another, each of whole frames."""

    samples: np.ndarray
    """int16[frames * hop]."""
    log_hertz: np.ndarray
    """float32[frames], interpolated where unvoiced."""
    voiced: np.ndarray
    """float32[frames], 0 or 1."""
    frames: np.ndarray
    """int64[clips]."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("corpora", nargs="*", metavar="CACHE=DATA")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--batch-size", type=int, help="crops  [default: 8, and 32 for --export]")
    parser.add_argument("--frames", type=int, default=64, help="T of a crop")
    parser.add_argument("--export", action="store_true")
    parser.add_argument("--weights", type=Path)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    vocoder = Vocoder(VocoderConfig(), PROFILE, mean=MEAN, deviation=DEVIATION)
    if options.weights is None:
        recordings = read([tuple(map(Path, corpus.split("=", 1))) for corpus in options.corpora])
        crops = options.batch_size or (32 if options.export else 8)
        step = LockedStep(vocoder, crops, options.frames)
        if options.export:
            return step.export(options.out, recordings)
        train(step, recordings, options.steps)
        np.savez(options.out / "weights.npz", **step.averages())
    with np.load(options.weights or options.out / "weights.npz") as weights:
        for weight in generator_weights(vocoder):
            weight.assign(weights[weight.path])
    data = vocoder_graph(vocoder).SerializeToString()
    (options.out / "vocoder.onnx").write_bytes(data)
    return print(f"{options.out / 'vocoder.onnx'}: {len(data) / 1e6:.2f} MB")


def generator_weights(vocoder: Vocoder) -> list[tf.Variable]:
    """What speaks: the weights without those of the discriminators."""
    return [weight for weight in vocoder.trainable_variables if "/discriminator_" not in weight.path]


def read(corpora: list[tuple[Path, ...]]) -> Recordings:
    """The training clips of the caches, with their pitch; corpora: (cache, folder of its corpus)."""
    clips, hop = [], PROFILE.hop_samples
    for cache, data in corpora:
        for row in kept_rows(read_index(cache / load_spec(cache).index_file)):
            if row.split != "train":
                continue
            clip = row.clip
            segment = None if clip.start is None or clip.duration is None else Segment(clip.start, clip.duration)
            samples = read_recording(data / clip.source, segment).at(PROFILE.sample_rate)
            frames = len(samples) // hop
            hertz = track_pitch(samples, PROFILE, frames)
            voiced = np.flatnonzero(hertz)
            if len(voiced):
                log_hertz = np.interp(np.arange(frames), voiced, np.log(hertz[voiced]))
                whole = np.clip(np.round(samples[: frames * hop] * 32_767), -32_768, 32_767).astype(np.int16)
                clips.append((whole, log_hertz.astype(np.float32), (hertz > 0).astype(np.float32), frames))
    print(f"{len(clips)} clips, {sum(clip[3] for clip in clips) * hop / PROFILE.sample_rate / 60:.1f} minutes")
    samples, log_hertz, voiced, frames = zip(*clips, strict=True)
    return Recordings(np.concatenate(samples), np.concatenate(log_hertz), np.concatenate(voiced), np.array(frames))


class LockedStep:
    """Losses, gradients and update of generator and discriminators as one compiled function."""

    def __init__(self, vocoder: Vocoder, crops: int, frames: int) -> None:
        self.vocoder, self.crops, self.frames = vocoder, crops, frames
        self.samples = (frames - 1) * PROFILE.hop_samples + PROFILE.fft_size
        weights = vocoder.trainable_variables
        self.optimizer = AdamW(weights, TRAINING, decays, lambda weight: int("/discriminator_" in weight.path))
        self.step = tf.Variable(0, dtype=tf.int64, trainable=False)
        shape = [crops, frames]
        self.signature = [
            tf.TensorSpec([crops, self.samples], tf.int16), tf.TensorSpec(shape), tf.TensorSpec(shape),
            tf.TensorSpec([]),
        ]  # fmt: skip
        self.run = tf.function(self._update, input_signature=self.signature, jit_compile=True, autograph=False)

    def _update(self, samples: tf.Tensor, log_hertz: tf.Tensor, voiced: tf.Tensor, rate: tf.Tensor) -> tf.Tensor:
        """Losses in the order of `LOSSES`; samples reach (fft_size - hop) / 2 beyond the crop at both ends."""
        vocoder = self.vocoder
        with tf.GradientTape() as tape:
            inside = tf.cast(samples[:, vocoder.padding : -vocoder.padding], tf.float32) / 32_768.0
            crops = Crops(inside, log_mel(samples, PROFILE), log_hertz, voiced)
            seed = tf.stack([tf.cast(self.step, tf.int32), 0])
            sums = vocoder.loss_sums(crops, tf.range(self.crops), seed)
            losses = tf.stack([tf.reduce_mean(sums[name]) for name in LOSSES])
            total = tf.reduce_sum(losses * np.array(LOSS_WEIGHTS, np.float32))
        optimizer = self.optimizer
        gradients = tape.gradient(total, optimizer.weights, unconnected_gradients=tf.UnconnectedGradients.ZERO)
        flat = optimizer.flat.flatten([tf.convert_to_tensor(gradient) for gradient in gradients])
        clipped, norms = optimizer.clip(flat, TRAINING.clip_norm)
        optimizer.apply(clipped, rate, accept=tf.reduce_all(tf.math.is_finite(norms)))
        self.step.assign_add(1)
        return losses

    def variables(self) -> dict[str, tf.Variable]:
        """What the step changes, by name."""
        optimizer = self.optimizer
        state = {"first": optimizer.first, "second": optimizer.second, "averages": optimizer.averages}
        state |= {"updates": optimizer.updates, "step": self.step}
        return {weight.path: weight for weight in optimizer.weights} | state

    def averages(self) -> dict[str, np.ndarray]:
        """The averaged weights of the generator."""
        optimizer = self.optimizer
        parts = optimizer.flat.split(optimizer.averages.read_value())
        wanted = {weight.path for weight in generator_weights(self.vocoder)}
        named = zip(optimizer.weights, parts, strict=True)
        return {weight.path: part.numpy() for weight, part in named if weight.path in wanted}

    def export(self, folder: Path, recordings: Recordings) -> None:
        """Write what `run_hlo.py` runs: the step, its variables and the recordings."""
        names = list(self.variables())
        handles = [_handle(variable) for variable in self.variables().values()]
        captured = [
            next(name for name, handle in zip(names, handles, strict=True) if handle is tensor)
            for tensor in self.run.get_concrete_function().captured_inputs
        ]
        blank = [tf.zeros(part.shape, part.dtype) for part in self.signature]
        (folder / "step.hlo").write_bytes(self.run.experimental_get_compiler_ir(*blank)(stage="hlo_serialized"))
        np.savez(folder / "variables.npz", **{name: variable.numpy() for name, variable in self.variables().items()})
        np.savez(folder / "recordings.npz", **recordings._asdict())
        flat, weights = self.optimizer.flat, self.optimizer.weights
        places = {
            weight.path: int(tf.reshape(part, [-1])[0])
            for weight, part in zip(weights, flat.split(tf.range(flat.size)), strict=True)
        }
        described = {
            "captured": captured, "crops": self.crops, "frames": self.frames, "samples": self.samples,
            "hop": PROFILE.hop_samples, "peak": PEAK, "warmup_steps": WARMUP_STEPS, "decay": DECAY,
            "weights": {weight.path: places[weight.path] for weight in generator_weights(self.vocoder)},
        }  # fmt: skip
        (folder / "step.json").write_text(json.dumps(described, indent=1) + "\n", encoding="utf-8")


def _handle(variable: tf.Variable) -> tf.Tensor:
    return getattr(variable, "value", variable).handle if not hasattr(variable, "handle") else variable.handle


def train(step: LockedStep, recordings: Recordings, steps: int) -> None:
    """Train here; says the losses every 500 steps."""
    random, hop, began = np.random.default_rng(0), PROFILE.hop_samples, time.perf_counter()
    starts = np.cumsum(recordings.frames) - recordings.frames
    room = np.maximum(recordings.frames - step.frames - 4, 0)
    decay_start, losses = int(steps * (1.0 - DECAY)), []
    for number in range(steps):
        chosen = random.choice(len(room), step.crops, p=room / room.sum())
        places = starts[chosen] + 2 + (random.random(step.crops) * room[chosen]).astype(np.int64)
        first = places * hop - step.vocoder.padding
        batch = (
            recordings.samples[first[:, None] + np.arange(step.samples)],
            recordings.log_hertz[places[:, None] + np.arange(step.frames)],
            recordings.voiced[places[:, None] + np.arange(step.frames)],
        )
        share = max(0.0, number - decay_start) / max(steps - decay_start, 1)
        rate = PEAK * min(1.0, (number + 1) / WARMUP_STEPS) * (0.05 + 0.475 * (1.0 + math.cos(math.pi * share)))
        losses.append(step.run(*map(tf.constant, batch), tf.constant(rate, tf.float32)).numpy())
        if number % 500 == 499 or number == steps - 1:
            means = dict(zip(LOSSES, np.mean(losses, axis=0).round(3).tolist(), strict=True))
            print(f"step {number + 1}  {means}  {time.perf_counter() - began:.0f} s", flush=True)
            losses = []


if __name__ == "__main__":
    main()
