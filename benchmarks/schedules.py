"""The schedule of every size and GPU overlay on corpora of 0.4 to 500 hours: batches, steps, rates. Trains nothing.

    python benchmarks/schedules.py

The lengths are those of LJSpeech-1.1, as many clips of them as the hours take.
"""

import argparse
from functools import cache
from typing import Literal

import numpy as np
from reporting.report import table_lines
from setup.ljspeech_corpus import PROFILE, read_lengths

from xtts.shared.cache.bucket_shapes import choose_shapes, fitting_buckets
from xtts.shared.cache.cache_spec import Bucket, CacheSpec, Shard, shard_file, with_digest
from xtts.shared.cache.clip_index import ShardId
from xtts.shared.config_files import OVERLAYS, load_config, packaged_configs
from xtts.trainer.data.batch_sizes import batch_sizes, for_corpus
from xtts.trainer.loop.schedule import peak_learning_rate, warmup_steps
from xtts.trainer.models.kind import kind_of

SIZES = ("tiny", "small", "normal", "big")
HOURS = (0.4, 1.8, 24.0, 500.0)
NO_GPU = "none"


def main() -> None:
    argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0]).parse_args()
    gpus = [NO_GPU, *(name.removeprefix(OVERLAYS) for name in packaged_configs(OVERLAYS))]
    print("\n".join(table_lines([row(size, gpu, hours) for size in SIZES for gpu in gpus for hours in HOURS])))


def row(size: str, gpu: str, hours: float) -> dict[str, str]:
    """A line of the table, by column."""
    config = load_config(size, overlays=[OVERLAYS + gpu] if gpu != NO_GPU else [])
    clips = corpus(hours)
    spec = spec_of(clips, config.shapes.buckets)
    training = for_corpus(config, spec, kind_of(config).automatic_steps(config)[0]).training
    mean = mean_batch(spec, batch_sizes(spec, training))
    return {
        "size": size, "GPU": gpu, "hours": f"{hours:g}", "batch_size": f"{training.batch_size}",
        "clips a step": f"{mean:.1f}", "steps": f"{training.steps:,}",
        "epochs": f"{training.steps * mean / len(clips):,.0f}",
        "warm-up": f"{warmup_steps(training) / training.steps:.1%}",
        "validations": f"{training.steps // training.validate_every:,}",
        "samples": f"{training.steps // (training.samples_every or training.steps + 1):,}",
        "peak rate": f"{peak_learning_rate(training):.1e}",
    }


@cache
def corpus(hours: float) -> np.ndarray:
    """int[N, 2]: (tokens, frames) of as many clips of LJSpeech as last so long; a character is a token."""
    rows = np.array([(characters, frames) for frames, characters in read_lengths()])
    seconds = rows[:, 1].sum() * PROFILE.hop_samples / PROFILE.sample_rate
    count = round(len(rows) * hours * 3600 / seconds)
    return rows[np.arange(count) * 7919 % len(rows)]  # 7919 is prime: each as often as any other


def spec_of(clips: np.ndarray, count: int | Literal["auto"]) -> CacheSpec:
    """As much of a cache spec as decides batches and steps: every clip is trained on, a bucket is one shard."""
    tokens, frames = clips.T
    shapes = choose_shapes(tokens, frames, count)
    held = np.bincount(fitting_buckets(shapes, tokens, frames), minlength=len(shapes)).tolist()
    files = [shard_file(ShardId("train", number, 0), 1) for number in range(len(shapes))]
    buckets = [
        Bucket.model_construct(
            tokens=shape.tokens, frames=shape.frames, validation=[],
            train=[Shard.model_construct(file=with_digest(file, "0" * 64), records=records)],
        ) for shape, file, records in zip(shapes, files, held, strict=True)
    ]
    return CacheSpec.model_construct(buckets=buckets, weights={})


def mean_batch(spec: CacheSpec, sizes: dict[int, int]) -> float:
    """Clips of an average step: a bucket gives steps in proportion to its clips over its batch."""
    counts = [spec.epoch_clips(bucket) for bucket in spec.buckets]
    return sum(counts) / sum(count / sizes[number] for number, count in enumerate(counts))


if __name__ == "__main__":
    main()
