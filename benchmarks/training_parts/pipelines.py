"""The input pipelines of section (b), each run in a process of its own with NAME JOB, the latter as JSON.

The others follow common practice: one float32 .npy per clip, np.load for each, padding to the batch's longest clip.
Tokens come from the text by the tokenizer of stage 1, so that all pipelines return the same. All run endlessly,
shuffled, over files in the page cache.
"""

import json
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
from reporting.report import cpu_seconds

from xtts.shared.audio.mel_profiles import mel_profile
from xtts.shared.cache.cache_spec import load_spec
from xtts.shared.text.tokenizer import build_tokenizer

if TYPE_CHECKING:
    import tensorflow as tf

PROFILE = mel_profile("hifigan")
TOKENIZER = build_tokenizer("characters", add_blank=False)
_BATCHES_A_CALL = 20
_WARM_UP_CALLS = 3
Clip = tuple[np.ndarray, np.ndarray]
"""tokens int32[L], mel float32[T, M]."""
Take = Callable[[], int]
"""Takes some batches and returns how many clips they held."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """Input of every pipeline."""

    cache: str
    config: str
    """YAML file."""
    npy: str
    """Folder of metadata.csv and one .npy per clip."""
    batch_size: int
    seconds: float

    def clips(self) -> list[tuple[str, str]]:
        """(path of the mel, text) of every clip."""
        folder = Path(self.npy)
        lines = (line.split("|") for line in (folder / "metadata.csv").read_text(encoding="utf-8").splitlines())
        return [(str(folder / f"{name}.npy"), text) for name, text, _ in lines]


def load(path: str | bytes, text: str | bytes) -> Clip:
    """Read one clip as most trainers do."""
    letters = text.decode() if isinstance(text, bytes) else text
    mel = np.load(path.decode() if isinstance(path, bytes) else path)
    return np.array(TOKENIZER.encode(letters).ids, np.int32), mel


def pad(clips: list[Clip]) -> tuple[np.ndarray, ...]:
    """One batch, padded in Python."""
    lengths = [(len(tokens), len(mel)) for tokens, mel in clips]
    longest, most_frames = map(max, zip(*lengths, strict=True))
    padded_tokens = np.zeros((len(clips), longest), np.int32)
    padded_mel = np.full((len(clips), most_frames, PROFILE.mel_channels), PROFILE.silence, np.float32)
    for i, (tokens, mel) in enumerate(clips):
        padded_tokens[i, : len(tokens)], padded_mel[i, : len(mel)] = tokens, mel
    return padded_tokens, padded_mel, *(np.array(column, np.int32) for column in zip(*lengths, strict=True))


def lockstep(job: Job) -> Take:
    """The real training loop, started as in xtts-train, with steps that do nothing."""
    from xtts.trainer.system.tensorflow_import import tensorflow_import

    with tensorflow_import(compile_cache=False):
        import tensorflow as tf

        from xtts.shared.config_files import load_config
        from xtts.trainer.data.training_bucket import training_buckets
        from xtts.trainer.loop.training_loop import Position, TrainingLoop

    spec, config = load_spec(Path(job.cache)), load_config(job.config)
    buckets = training_buckets(Path(job.cache), spec, config)
    epoch, consumed = tf.Variable(0, dtype=tf.int64), tf.Variable(np.zeros(len(buckets), np.int64))
    loop = TrainingLoop(buckets, [_NoStepFunctions(config.training)], Position(epoch=epoch, consumed=consumed))
    by_place = np.array([bucket.batch_size for bucket in buckets])
    return lambda: int(by_place[loop.run(_BATCHES_A_CALL).buckets].sum())


class _NoStepFunctions:
    """Replaces the model's steps: takes a batch and ignores it."""

    def __init__(self, training: Any) -> None:  # noqa: ANN401 - annotated without the import
        import tensorflow as tf

        from xtts.trainer.models.acoustic.objective import ACOUSTIC

        self.metrics, self.training, self.step = ACOUSTIC, training, tf.Variable(0, dtype=tf.int64)

    def gradients(self, _: int, batch: "tuple[tf.Tensor, ...]") -> "list[tf.Tensor]":
        """Take the batch."""
        return list(batch[2:])

    def apply(self, frames: "tf.Tensor", _: "tf.Tensor", total: "list[tf.Tensor]") -> "tf.Tensor":
        """Count the frames."""
        import tensorflow as tf

        return tf.concat([tf.zeros([len(self.metrics.step) - 1]), [tf.cast(frames, tf.float32)]], 0)


def take_from(dataset: "tf.data.Dataset") -> Take:
    """Take batches inside the graph, so that no pipeline pays for an unnecessary Python loop."""
    import tensorflow as tf

    iterator = iter(dataset)

    @tf.function(input_signature=[])  # type: ignore[untyped-decorator]
    def run() -> tf.Tensor:
        clips = tf.constant(0)
        for _ in tf.range(_BATCHES_A_CALL):
            clips += tf.shape(next(iterator)[0])[0]
        return clips

    return lambda: int(run())


def numpy_function(job: Job) -> Take:
    """tf.numpy_function for each clip in a parallel map, padded_batch, prefetch."""
    import tensorflow as tf

    paths, texts = zip(*job.clips(), strict=True)

    def read(path: tf.Tensor, text: tf.Tensor) -> tuple[tf.Tensor, ...]:
        tokens, mel = tf.numpy_function(load, [path, text], [tf.int32, tf.float32])
        tokens.set_shape([None])
        mel.set_shape([None, PROFILE.mel_channels])
        return tokens, mel, tf.shape(tokens)[0], tf.shape(mel)[0]

    dataset = tf.data.Dataset.from_tensor_slices((list(paths), list(texts))).shuffle(len(paths)).repeat()
    clips = dataset.map(read, num_parallel_calls=tf.data.AUTOTUNE)
    padding = (0, PROFILE.silence, 0, 0)
    return take_from(clips.padded_batch(job.batch_size, padding_values=padding).prefetch(tf.data.AUTOTUNE))


def from_generator(job: Job) -> Take:
    """tf.data.Dataset.from_generator over batches that Python loads and pads, prefetch."""
    import tensorflow as tf

    def batches() -> Iterator[tuple[np.ndarray, ...]]:
        clips, shuffle = job.clips(), random.Random(0)
        while True:
            shuffle.shuffle(clips)
            for start in range(0, len(clips) - job.batch_size + 1, job.batch_size):
                yield pad([load(*clip) for clip in clips[start : start + job.batch_size]])

    number, channels = tf.TensorSpec([None], tf.int32), PROFILE.mel_channels
    tokens, mel = tf.TensorSpec([None, None], tf.int32), tf.TensorSpec([None, None, channels], tf.float32)
    dataset = tf.data.Dataset.from_generator(batches, output_signature=(tokens, mel, number, number))
    return take_from(dataset.prefetch(tf.data.AUTOTUNE))


PIPELINES: dict[str, Callable[[Job], Take]] = {
    "lockstep": lockstep, "tf.numpy_function": numpy_function, "from_generator": from_generator,
}


def main() -> None:
    name, described = sys.argv[1:]
    job = Job(**json.loads(described))
    take = PIPELINES[name](job)
    for _ in range(_WARM_UP_CALLS):
        take()
    examples, cpu, began = 0, cpu_seconds(), time.perf_counter()
    while time.perf_counter() - began < job.seconds:
        examples += take()
    spent, cpu = time.perf_counter() - began, cpu_seconds() - cpu
    print(json.dumps({"examples_per_second": examples / spent, "cpu_microseconds": 1e6 * cpu / examples}), flush=True)
    os._exit(0)  # an endless generator would keep its thread, and this process, alive


if __name__ == "__main__":
    main()
