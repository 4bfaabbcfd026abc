"""What a run on LJSpeech is at every size and GPU overlay: batches, steps, learning rate, frames. Trains nothing.

    python benchmarks/schedules.py [--sizes normal big] [--lengths FILE.csv] [--frames-per-second F]

The lengths are those of every fiftieth clip of LJSpeech-1.1, fifty times; `--lengths` takes a file with the columns
characters and mel_frames instead, one line a clip. Rates of GPUs are not known here: the last column is the rate that
ends the run in 24 hours, and with `--frames-per-second` there are hours.
"""

import argparse
import csv
from pathlib import Path

import numpy as np
from setup.ljspeech_corpus import LENGTHS

from xtts.shared.cache.bucket_shapes import choose_shapes, fitting_buckets
from xtts.shared.cache.cache_spec import Bucket, CacheSpec, Shard
from xtts.shared.cache.clip_index import Place
from xtts.shared.cache.file_names import shard_file
from xtts.shared.config_files import OVERLAYS, load_config, packaged_configs
from xtts.trainer.data.batch_sizes import batch_sizes, with_steps
from xtts.trainer.engine.schedule import peak_learning_rate

SAMPLED = 50
"""Clips of the corpus for each line of the lengths in this repository."""
HOUR = 3600


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sizes", nargs="+", default=["normal", "big"], metavar="SIZE")
    parser.add_argument("--lengths", type=Path, help="characters and mel_frames of every clip")
    parser.add_argument("--frames-per-second", type=float, metavar="F", help="useful frames/s of your machine")
    options = parser.parse_args()
    clips = read_clips(options.lengths)
    head = ["size", "GPU", "batch_size", "clips a step", "steps an epoch", "epochs", "steps", "peak rate"]
    head += ["frames/s for 24 h"]
    head += ["hours"] if options.frames_per_second else []
    print(f"{len(clips):,} clips, {sum(frames for _, frames in clips):,} frames", end="\n\n")
    print("| " + " | ".join(head) + " |\n" + "|---" * len(head) + "|")
    for size in options.sizes:
        for overlay in ["", *packaged_configs(OVERLAYS)]:
            print("| " + " | ".join(row(size, overlay, clips, options.frames_per_second)) + " |")


def read_clips(path: Path | None) -> list[tuple[int, int]]:
    """(tokens, frames) of every clip; a character is a token."""
    with (path or LENGTHS).open(encoding="utf-8", newline="") as file:
        rows = [(int(row["characters"]), int(row["mel_frames"])) for row in csv.DictReader(file)]
    return rows if path else rows * SAMPLED


def row(size: str, overlay: str, clips: list[tuple[int, int]], rate: float | None) -> list[str]:
    """A line of the table."""
    config = load_config(size, overlays=[overlay] if overlay else [])
    spec = spec_of(clips, config.shapes.buckets)
    sizes = batch_sizes(spec, config.training)
    training = with_steps(config, spec, sizes).training
    epochs = training.steps * mean_batch(spec, sizes) / len(clips)
    frames = epochs * sum(frames for _, frames in clips)
    cells = [
        size, overlay.removeprefix(OVERLAYS) or "-", f"{training.batch_size}", f"{mean_batch(spec, sizes):.1f}",
        f"{training.steps / epochs:,.0f}", f"{epochs:,.0f}", f"{training.steps:,}",
        f"{peak_learning_rate(training):.1e}",
        f"{frames / (24 * HOUR):,.0f}",
    ]  # fmt: skip
    return [*cells, *([f"{frames / rate / HOUR:.1f}"] if rate else [])]


def spec_of(clips: list[tuple[int, int]], count: int) -> CacheSpec:
    """As much of a cache spec as decides batches and steps: every clip is trained on, a bucket is one shard."""
    tokens, frames = np.array(clips).T
    shapes = choose_shapes(tokens, frames, count)
    held = np.bincount(fitting_buckets(shapes, tokens, frames), minlength=len(shapes)).tolist()
    buckets = [
        Bucket(tokens=shape.tokens, frames=shape.frames, validation=[], train=[shard(number, records)])
        for number, (shape, records) in enumerate(zip(shapes, held, strict=True))
    ]
    return CacheSpec.model_construct(buckets=buckets, weights={})


def shard(bucket: int, records: int) -> Shard:
    """One that holds a whole bucket."""
    return Shard(file=shard_file(Place("train", bucket, 0), 1), records=records, bytes=1, sha256="0" * 64)


def mean_batch(spec: CacheSpec, sizes: dict[int, int]) -> float:
    """Clips of an average step: a bucket gives steps in proportion to its clips over its batch."""
    counts = [spec.epoch_clips(bucket) for bucket in spec.buckets]
    return sum(counts) / sum(count / sizes[number] for number, count in enumerate(counts))


if __name__ == "__main__":
    main()
