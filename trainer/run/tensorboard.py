"""TensorBoard's files of a run."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import tensorflow as tf

from xtts.shared.audio.mel_pictures import png_bytes
from xtts.shared.audio.mel_profiles import MelProfile
from xtts.shared.errors import LockstepError
from xtts.trainer.loop.failures import plain_message
from xtts.trainer.models.samples import Shown

_SENTENCES = {
    "loss": "the weighted sum of the losses.",
    "gradient_norm": "the norm of the gradient before clipping, without what is clipped by itself.",
    "learning_rate": "the learning rate: it warms up, stays, and decays at the end of the run.",
    "skipped": "the share of updates skipped because a loss or gradient was not finite; 0 is good.",
    "useful_frames": "mel frames of speech in a batch, without the padding.",
    "step_seconds": "seconds from the end of one step to the end of the next.",
    "input_wait_share": "the share of the step time spent waiting for the input pipeline; near 0 is good.",
    "outside_share": "the share of the time spent outside steps: validation, samples, checkpoints.",
    "useful_frames_per_second": "mel frames of speech, without the padding, trained on in a second.",
    "traces": "traces of training steps so far; with locked shapes it stays at the number of buckets.",
}
"""A sentence for each number that every kind of model has."""
_SPLITS = {"train": "On training batches since the last point: ", "validation": "On the validation split: "}


class TensorBoard:
    """Writes curves, texts, sounds and pictures of a run."""

    def __init__(self, folder: Path, losses: Mapping[str, str], samples: Mapping[str, str]) -> None:
        """losses, samples: `descriptions` of the kind's metrics and samples, shown behind the (i) of a chart."""
        self._losses, self._samples = {**_SENTENCES, **losses}, samples
        self._writer = tf.summary.create_file_writer(str(folder))

    @contextmanager
    def _at(self, step: int) -> Iterator[None]:
        try:
            with self._writer.as_default(step=step):
                yield
        except tf.errors.OpError as error:
            file, reason = plain_message(error).partition("; ")[::2]
            raise LockstepError(
                file, found=f"cannot be written ({reason})", fix="free the disk and resume", exit_code=1
            ) from None

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Write the values of a step, by tag."""
        with self._at(step):
            for tag, value in values.items():
                split, _, name = tag.partition("/")
                described = self._losses if split in _SPLITS else self._samples
                tf.summary.scalar(tag, value, description=_SPLITS.get(split, "") + described.get(name, name))

    def show(self, step: int, summaries: Iterable[tuple[str, Shown]], profile: MelProfile) -> None:
        """Write (tag, text, samples float32[S] or picture) of each of these summaries."""
        with self._at(step):
            for tag, shown in summaries:
                _summarise(tag, shown, profile, self._samples.get(tag.partition("/")[0], ""))
            self._writer.flush()

    def close(self) -> None:
        """Flush everything."""
        self._writer.close()


def _summarise(tag: str, shown: Shown, profile: MelProfile, description: str) -> None:
    """Write a text, samples float32[S] or a picture to TensorBoard."""
    if isinstance(shown, str):
        tf.summary.text(tag, shown, description=description)
    elif isinstance(shown, np.ndarray):
        sound, rate = shown[np.newaxis, :, np.newaxis], profile.sample_rate
        tf.summary.audio(tag, sound, rate, encoding="wav", description=description)
    else:
        image = tf.io.decode_png(png_bytes(shown), channels=3)[tf.newaxis]
        tf.summary.image(tag, image, description=description)
