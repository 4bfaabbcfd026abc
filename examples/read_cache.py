"""Read a cache with stock TensorFlow alone: python examples/read_cache.py CACHE.

Shapes, types and files come from cache.json; each bucket has one shape. No part of Lockstep is imported.
"""

import json
import sys
from pathlib import Path

import tensorflow as tf


def read_bucket(cache: Path, number: int, *, split: str = "train", batch_size: int = 4) -> tf.data.Dataset:
    """Batches of one bucket: tokens int64[B, L], mel [B, T, M] (log magnitudes, padded), id string[B], lengths."""
    spec = json.loads((cache / "cache.json").read_text(encoding="utf-8"))
    bucket, scalar = spec["buckets"][number], tf.io.FixedLenFeature([], tf.int64)
    features = {
        "id": tf.io.FixedLenFeature([], tf.string),
        "tokens": tf.io.FixedLenFeature([bucket["tokens"]], tf.int64),
        "mel": tf.io.FixedLenFeature([], tf.string),
        "token_length": scalar, "mel_length": scalar, "speaker": scalar,
    }

    def parse(records: tf.Tensor) -> dict[str, tf.Tensor]:
        clips = tf.io.parse_example(records, features)
        mel = tf.io.decode_raw(clips["mel"], spec["mel_dtype"])
        return {**clips, "mel": tf.reshape(mel, [-1, bucket["frames"], spec["mel_channels"]])}

    files = [str(cache / shard["file"]) for shard in bucket[split]]
    return tf.data.TFRecordDataset(files).batch(batch_size).map(parse).prefetch(1)


def main() -> None:
    """Print the first batch of every bucket."""
    cache = Path(sys.argv[1])
    for number, _ in enumerate(json.loads((cache / "cache.json").read_text(encoding="utf-8"))["buckets"]):
        for batch in read_bucket(cache, number).take(1):
            shapes = ", ".join(f"{name} {part.dtype.name}{part.shape.as_list()}" for name, part in batch.items())
            print(f"bucket {number:02d}: {shapes}")


if __name__ == "__main__":
    main()
