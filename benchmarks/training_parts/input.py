"""Section (c): the input pipeline alone, against common ones, and tf.data's options against each other."""

import json
import statistics
from collections.abc import Callable
from pathlib import Path

import numpy as np
import tensorflow as tf
from reporting.report import version
from reporting.summary import MEMCPY_TARGET, PIPELINE_TARGETS
from setup.commands import script
from setup.ljspeech_corpus import configure

from training_parts.pipelines import PIPELINES, Job, measure, take_from, write_job
from training_parts.steps import StepBench
from xtts.shared.cache.cache_spec import load_spec
from xtts.shared.cache.shard_reader import read_shard
from xtts.shared.config import Config
from xtts.shared.config_files import dump_config
from xtts.trainer.data.dataset import parser, training_batches
from xtts.trainer.data.training_bucket import TrainingBucket, training_buckets

Turn = dict[str, float | None]
"""Result of `measure`."""
_NEEDS = {"torch DataLoader": "torch"}
"""The package that a pipeline needs."""


def input_pipelines(bench: StepBench) -> dict[str, object]:
    """(c) Clips/s of every pipeline alone; the same batch size for all, shuffled, page cache warm."""
    shapes = max(bench.options.buckets)
    job = make_job(bench, shapes)
    found: dict[str, list[Turn]] = {name: [] for name in PIPELINES if name not in _NEEDS or version(_NEEDS[name])}
    for _ in range(bench.options.rounds):
        for name, turns in found.items():
            turns.append(run_alone(name, job))
    medians = {name: statistics.median(turn["examples_per_second"] for turn in turns) for name, turns in found.items()}
    ours = medians.pop("lockstep")
    del medians["memcpy"]  # only copies, on one core: its CPU time counts
    return {
        "title": f"input pipeline alone, {shapes} shapes, batches of {batches(bench, shapes).training.batch_size}",
        **{f"times_{name}": ours / rate for name, rate in medians.items()},
        "times_memcpy": times_memcpy(found),
        "target_times_memcpy": MEMCPY_TARGET,
        "targets": ", ".join(f"{target} {name}" for name, target in PIPELINE_TARGETS.items() if target),
        "examples_per_second": ours,
        "memcpy_microseconds_an_example": cpu_median(found["memcpy"]),
        "table": [
            {
                "pipeline": name,
                "lockstep_is_times_faster": ours / medians.get(name, ours),
                "examples_per_second": medians.get(name, ours),
                "cpu_microseconds_an_example": cpu_median(turns),
            }
            for name, turns in found.items()
            if name != "memcpy"
        ]
        + option_rows(bench, shapes),
    }


def batches(bench: StepBench, shapes: int) -> Config:
    """Configuration of the pipelines: batches of 32, typical for a GPU, unless `--set` says otherwise.

    With the 8 of `tiny` the overhead per batch would count four times as much.
    """
    settings = ["training.batch_size=32", *bench.options.assignments, "training.constant_frames_per_batch=false"]
    return configure(bench.options.config, settings, {"shapes.buckets": shapes})


def make_job(bench: StepBench, shapes: int) -> Path:
    """The job file of the cache with that many shapes; all batches have the same size."""
    work, options = bench.options.work, bench.options
    config = batches(bench, shapes)
    (work / "config-input.yaml").write_text(dump_config(config), encoding="utf-8")
    cache = bench.cache(shapes)
    job = Job(
        cache=str(cache), config=str(work / "config-input.yaml"), npy=str(write_npy(bench.corpus, cache, work / "npy")),
        batch_size=config.training.batch_size, seconds=options.seconds,
    )  # fmt: skip
    return write_job(work / "job.json", job)


def write_npy(corpus: Path, cache: Path, folder: Path) -> Path:
    """Write the cache's mels as one float32 .npy per clip, next to the corpus' texts."""
    if (folder / "metadata.csv").is_file():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    spec = load_spec(cache)
    for bucket in spec.buckets:
        for _, record in (clip for shard in bucket.train for clip in read_shard(cache / shard.file, spec, bucket)):
            np.save(folder / f"{record.clip_id}.npy", record.mel[: record.mel_length].astype(np.float32))
    (folder / "metadata.csv").write_bytes((corpus / "metadata.csv").read_bytes())
    return folder


def run_alone(name: str, job: Path) -> Turn:
    """Run one pipeline in a separate process."""
    printed = script("-m", "training_parts.pipelines", name, job)
    return dict(json.loads(printed.splitlines()[-1]))


def cpu_median(turns: list[Turn]) -> float | None:
    """CPU time per clip in microseconds, where known."""
    known = [turn["cpu_microseconds"] for turn in turns if turn["cpu_microseconds"] is not None]
    return statistics.median(known) if known else None


def times_memcpy(found: dict[str, list[Turn]]) -> float:
    """CPU time per clip relative to one copy of its bytes: median of the rounds."""
    rounds = zip(*([turn["cpu_microseconds"] for turn in found[name]] for name in ("lockstep", "memcpy")), strict=True)
    return statistics.median(ours / copy for ours, copy in rounds if ours is not None and copy is not None)


def option_rows(bench: StepBench, shapes: int) -> list[dict[str, object]]:
    """tf.data's options on the middle bucket: the reason for those in trainer/data/dataset.py.

    Each variant is built for its own turn: a waiting one would read ahead during the turns of others.
    """
    cache, config = bench.cache(shapes), batches(bench, shapes)
    spec, number = load_spec(cache), shapes // 2
    variants = option_variants(training_buckets(cache, spec, config)[number])
    turns: dict[str, list[Turn]] = {name: [] for name in variants}
    for _ in range(bench.options.rounds):
        for name, build in variants.items():
            take = take_from(build())
            take()
            turns[name].append(measure(take, bench.options.seconds / 2))
    rate = {name: statistics.median(turn["examples_per_second"] for turn in found) for name, found in turns.items()}
    return [
        {
            "pipeline": f"one bucket of {spec.buckets[number].frames} frames, {name}",
            "lockstep_is_times_faster": rate["as trained"] / rate[name],
            "examples_per_second": rate[name],
            "cpu_microseconds_an_example": cpu_median(found),
        }
        for name, found in turns.items()
    ]


def option_variants(bucket: TrainingBucket) -> dict[str, Callable[[], tf.data.Dataset]]:
    """Endless batches of one bucket, by what the variant changes."""
    shards, order, size = bucket.files("train"), bucket.order, bucket.batch_size
    parse = parser(bucket, size)

    def batches(buffer_bytes: int, visit: Callable[[tf.Tensor], tf.data.Dataset]) -> tf.data.Dataset:
        read = tf.data.Dataset.from_tensor_slices(shards).interleave(
            lambda file: tf.data.TFRecordDataset(file, buffer_size=buffer_bytes), order.group_size, block_length=1
        )
        blocks = read.repeat().batch(order.block_records).prefetch(1)
        return blocks.flat_map(visit).batch(size, drop_remainder=True)

    def sliced(clips: tf.Tensor) -> tf.data.Dataset:
        return tf.data.Dataset.from_tensor_slices(clips).shuffle(order.block_records)

    def called(clips: tf.Tensor) -> tf.data.Dataset:
        places = tf.data.Dataset.range(tf.size(clips, tf.int64)).shuffle(order.block_records)
        return places.map(lambda place: clips[place])

    def plain(batches: tf.data.Dataset) -> tf.data.Dataset:
        return _tuned(batches.map(parse, synchronous=True).prefetch(2))

    def tuned(batches: tf.data.Dataset, threads: int = 0) -> tf.data.Dataset:
        parsed = batches.map(parse, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)
        return _tuned(parsed, autotune=True, threads=threads)

    def reading() -> tf.data.Dataset:
        read = tf.data.Dataset.from_tensor_slices(shards).interleave(
            lambda file: tf.data.TFRecordDataset(file, buffer_size=0), order.group_size, block_length=1
        )
        return _tuned(read.repeat().batch(order.block_records).map(lambda records: (records,)).prefetch(1))

    return {
        "reading the records and nothing else": reading,
        "as trained": lambda: training_batches(bucket, 0),
        "always read from the start": lambda: plain(batches(0, sliced)),
        "that, through buffers of 256 KiB": lambda: plain(batches(1 << 18, sliced)),
        "that, through buffers of 1 MiB": lambda: plain(batches(1 << 20, sliced)),
        "that, a function call for every clip": lambda: plain(batches(0, called)),
        "that, parse in tuned threads": lambda: tuned(batches(0, sliced)),
        "that, in a private pool of 2": lambda: tuned(batches(0, sliced), threads=2),
    }


def _tuned(dataset: tf.data.Dataset, *, autotune: bool = False, threads: int = 0) -> tf.data.Dataset:
    """The data set with its own options; `threads` of a private pool, 0 for the shared one."""
    options = tf.data.Options()
    options.autotune.enabled = autotune
    options.threading.private_threadpool_size = threads
    return dataset.with_options(options)
