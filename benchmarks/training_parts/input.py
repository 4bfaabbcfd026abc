"""Section (b): the input pipeline alone, against common ones."""

import json
import statistics
from dataclasses import asdict
from pathlib import Path

import numpy as np
from setup.commands import measured
from setup.ljspeech_corpus import configure

from training_parts.pipelines import PIPELINES, Job
from training_parts.steps import StepBench
from xtts.shared.cache.cache_spec import load_spec
from xtts.shared.cache.shard_reader import read_shard
from xtts.shared.config_files import dump_config


def input_pipelines(bench: StepBench) -> dict[str, object]:
    """(b) Clips/s of every pipeline alone; the same batch size for all, shuffled, page cache warm."""
    shapes = max(bench.options.buckets)
    job = make_job(bench, shapes)
    found: dict[str, list[dict[str, float]]] = {name: [] for name in PIPELINES}
    for _ in range(bench.options.rounds):
        for name, turns in found.items():
            turns.append(measured("-m", "training_parts.pipelines", name, json.dumps(asdict(job))))
    rates, spent = (
        {name: statistics.median(turn[figure] for turn in turns) for name, turns in found.items()}
        for figure in ("examples_per_second", "cpu_microseconds")
    )
    ours, *others = PIPELINES
    rows = [
        {"pipeline": name, "lockstep_is_times_faster": rates[ours] / rate, "examples_per_second": rate,
         "cpu_microseconds_an_example": spent[name]} for name, rate in rates.items()
    ]
    return {
        "title": f"input pipeline alone, {shapes} shapes, batches of {job.batch_size}",
        **{f"times_{name}": rates[ours] / rates[name] for name in others},
        "target": "6x tf.numpy_function", "examples_per_second": rates[ours], "table": rows,
    }


def make_job(bench: StepBench, shapes: int) -> Job:
    """What the pipelines read: batches of 32, typical for a GPU, all of the same size.

    With the 8 of `tiny` the overhead per batch would count four times as much.
    """
    work, cache = bench.options.work, bench.cache(shapes)
    sizes = {"training.batch_size": 32, "training.constant_frames_per_batch": False}
    config = configure(bench.options.config, sizes | {"shapes.buckets": shapes})
    (work / "config-input.yaml").write_text(dump_config(config), encoding="utf-8")
    return Job(
        cache=str(cache), config=str(work / "config-input.yaml"), npy=str(write_npy(bench.corpus, cache, work / "npy")),
        batch_size=config.training.batch_size, seconds=bench.options.seconds,
    )


def write_npy(corpus: Path, cache: Path, folder: Path) -> Path:
    """Write the cache's mels as one float32 .npy per clip, next to the corpus' texts."""
    if (folder / "metadata.csv").is_file():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    spec = load_spec(cache)
    for bucket in spec.buckets:
        for record in (record for shard in bucket.train for record in read_shard(cache / shard.file, spec)):
            np.save(folder / f"{record.clip_id}.npy", record.unpadded_mel.astype(np.float32))
    (folder / "metadata.csv").write_bytes((corpus / "metadata.csv").read_bytes())
    return folder
