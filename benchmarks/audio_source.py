"""Training from a cache and straight from audio: clips/s, processor time, input wait and the steadiness of the steps.

    python benchmarks/audio_source.py [--quick] [--data DIR] [--clips 1000] [--config tiny] [--out FILE.json]

Four sources of the same clips in the same order: the cache; the wavs, with mels by TensorFlow ops on the host; the
wavs, with mels inside the step; and librosa in a tf.numpy_function with a parallel map, as people start. "Input alone"
takes batches with steps that do nothing: of the mels inside the step it shows the host's share only. "Training" runs
the steps of --config. Without --data the corpus is noise with the lengths of LJSpeech-1.1. Each turn is a process of
its own; medians of the rounds.
"""

import argparse
import json
import os
import statistics
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
from reporting.report import cpu_seconds, machine, table_lines, write_json
from setup.amounts import corpus_parser, fill_defaults
from setup.commands import command, script
from setup.ljspeech_corpus import read_lengths, write_corpus

from xtts.shared.cache.cache_spec import CacheSpec, load_spec
from xtts.shared.config_files import load_config

if TYPE_CHECKING:
    import tensorflow as tf

QUICK = {"clips": 60, "rounds": 1, "batches": 12}
FULL = {"clips": 1000, "rounds": 3, "batches": 200}
CACHED, HOST, DEVICE, NUMPY = "cache", "audio, mels on the host", "audio, mels in the step", "librosa, numpy_function"
SOURCES = (CACHED, HOST, DEVICE, NUMPY)
TARGET = 3.0
"""How many times the clips/s of numpy_function the host has to reach, input alone."""


def main() -> None:
    options = parse_arguments()
    if options.turn:
        print(json.dumps(turn(options)), flush=True)
        os._exit(0)  # to delete an iterator over a numpy_function waits, with Python's lock, for a call that needs it
    corpus = options.data or write_corpus(options.work / f"noise-{options.clips}-whole", read_lengths(options.clips))
    for cache, kind in ((options.work / "cached", ()), (options.work / "indexed", ("--index-only",))):
        command("precompute", "build", "--data", corpus, "--cache", cache, "--config", options.config, *kind)
    found: dict[str, list[dict[str, float]]] = {source: [] for source in SOURCES}
    for _ in range(options.rounds):
        for source, turns in found.items():
            turns.append(measured(source, options))
    rows = [{"source": name, **medians(turns)} for name, turns in found.items()]
    rate = {str(row["source"]): float(row["input alone, clips/s"]) for row in rows}
    figures: dict[str, object] = {
        "title": "straight from audio",
        "times_numpy_function": rate[HOST] / rate[NUMPY],
        "target_times_numpy_function": TARGET,
        "clips": options.clips if options.data is None else load_spec(options.work / "cached").statistics.clips,
        "config": options.config,
        "rounds": options.rounds,
        "table": rows,
        **machine(("lockstep-tts", "tensorflow", "librosa")),
    }
    print("\n".join(table_lines(rows)))
    print(
        f"\nthe host reads {figures['times_numpy_function']:.2f} times the clips of numpy_function, target {TARGET:g}"
    )
    if options.out:
        write_json(options.out, figures)


def parse_arguments() -> argparse.Namespace:
    parser = corpus_parser(__doc__, QUICK)
    parser.add_argument("--data", type=Path, metavar="DIR", help="a corpus of 16-bit wavs at the profile's rate")
    parser.add_argument("--batches", type=int, help="batches of a turn")
    parser.add_argument("--config", default="tiny")
    parser.add_argument("--turn", choices=SOURCES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    fill_defaults(options, full=FULL, quick=QUICK)
    return options


def measured(source: str, options: argparse.Namespace) -> dict[str, float]:
    """One turn, in a process of its own."""
    said = script(
        Path(__file__), "--turn", source, "--work", options.work, "--config", options.config, "--batches",
        options.batches, "--clips", options.clips, "--rounds", 1,
    )  # fmt: skip
    return dict(json.loads(said.splitlines()[-1]))


def medians(turns: list[dict[str, float]]) -> dict[str, float]:
    """Of each figure."""
    return {name: statistics.median(turn[name] for turn in turns) for name in turns[0]}


def turn(options: argparse.Namespace) -> dict[str, float]:
    """Input alone, then training."""
    from xtts.trainer.system.tensorflow_import import tensorflow_import

    with tensorflow_import():
        from xtts.trainer.data.training_bucket import training_buckets
        from xtts.trainer.engine import training_loop
        from xtts.trainer.engine.engine import build_engine
        from xtts.trainer.engine.training_loop import Position, TrainingLoop

    import tensorflow as tf
    from training_parts.pipelines import _NoSteps as NoSteps

    cache = options.work / ("cached" if options.turn in (CACHED, NUMPY) else "indexed")
    flags = {"data.mel_on": "device" if options.turn == DEVICE else "host", "training.samples_every": None}
    config, spec = load_config(options.config, flags=flags), load_spec(cache)
    if options.turn == NUMPY:
        sound = load_spec(options.work / "indexed")
        training_loop.training_batches = lambda bucket, done: numpy_batches(bucket, sound, done)
    buckets = training_buckets(cache, spec, config)
    counts = np.zeros(sum(bucket.trains for bucket in buckets), np.int64)
    place = Position(epoch=tf.Variable(0, dtype=tf.int64), consumed=tf.Variable(counts))
    reading = TrainingLoop(buckets, config.data, NoSteps(config.training), place)  # kept: see `main`
    alone = run(reading, options.batches)
    engine = build_engine(buckets, config)
    engine.steps.compile()
    trained = run(engine.loop, options.batches)
    return {f"input alone, {name}": alone[name] for name in ("clips/s", "processor ms a clip")} | {
        f"training, {name}": value for name, value in trained.items()
    }


def run(loop: Any, batches: int) -> dict[str, float]:  # noqa: ANN401 - a TrainingLoop; TensorFlow is not imported here
    """Figures of some batches, after a warm-up that empties what was read ahead."""
    loop.run(max(4 * len(loop.buckets), batches // 4))
    began, spent = time.perf_counter(), cpu_seconds()
    result = loop.run(batches)
    seconds, spent = time.perf_counter() - began, cpu_seconds() - spent
    clips = int(np.array([bucket.batch_size for bucket in loop.buckets])[result.buckets].sum())
    frames = result.metrics[:, -1]
    even = result.step_seconds / frames  # buckets differ in frames a step
    return {
        "clips/s": clips / seconds,
        "processor ms a clip": 1000 * spent / clips,
        "input wait": float(result.wait_seconds.sum() / result.step_seconds.sum()),
        "step std/mean": float(even.std() / even.mean()),
    }


def numpy_batches(bucket: Any, sound: CacheSpec, consumed: int) -> "tf.data.Dataset":  # noqa: ANN401 - as above
    """The batches of a bucket as people start: librosa in a tf.numpy_function, in a parallel map; the same clips."""
    import tensorflow as tf

    from xtts.trainer.data.dataset import clip_stream

    signature, profile = bucket.signature, sound.mel_profile
    named = replace(bucket, cache=bucket.cache.with_name("indexed"), spec=sound)
    number, text = tf.io.FixedLenFeature([], tf.int64), tf.io.FixedLenFeature([], tf.string)
    features = {
        "tokens": tf.io.FixedLenFeature(signature.tokens.shape[1:], tf.int64), "audio": text, "token_length": number,
        "mel_length": number, "speaker": number, "language": tf.io.FixedLenFeature([], tf.int64, default_value=0),
    }  # fmt: skip

    def read(serialized: "tf.Tensor") -> tuple["tf.Tensor", ...]:
        clip = tf.io.parse_single_example(serialized, features)
        path = tf.strings.join([sound.audio_folders[""], "/", clip["audio"]])
        mel = tf.numpy_function(lambda path: librosa_mel(path.decode(), sound), [path], tf.float32)
        mel = tf.ensure_shape(mel, [None, profile.mel_channels])[: signature.mel.shape[1]]
        missing = signature.mel.shape[1] - tf.shape(mel)[0]
        clip["mel"] = tf.pad(mel, [[0, missing], [0, 0]], constant_values=profile.silence)
        return tuple(tf.ensure_shape(tf.cast(clip[part.name], part.dtype), part.shape[1:]) for part in signature)

    clips = clip_stream(named, consumed).map(read, num_parallel_calls=tf.data.AUTOTUNE)
    batches = clips.batch(bucket.batch_size, drop_remainder=True)
    return batches.map(lambda *parts: type(signature)(*parts)).prefetch(tf.data.AUTOTUNE)


def librosa_mel(path: str, spec: CacheSpec) -> np.ndarray:
    """float32[T, M], by librosa's own functions."""
    import librosa

    profile = spec.mel_profile
    samples, _ = librosa.load(path, sr=profile.sample_rate)
    pad = 0 if profile.centered else profile.padding_samples
    spectrum = librosa.feature.melspectrogram(
        y=np.pad(samples, pad, mode="reflect"), sr=profile.sample_rate, n_fft=profile.fft_size, power=1.0,
        hop_length=profile.hop_samples, n_mels=profile.mel_channels, fmin=profile.low_hz, fmax=profile.high_hz,
        center=profile.centered, pad_mode="reflect",
    )  # fmt: skip
    return np.ascontiguousarray(np.log(np.maximum(spectrum, profile.log_floor)).T.astype(np.float32))


if __name__ == "__main__":
    main()
