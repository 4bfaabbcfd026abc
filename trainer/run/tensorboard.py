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


class TensorBoard:
    """Writes curves, texts, sounds and pictures of a run."""

    def __init__(self, folder: Path) -> None:
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
                tf.summary.scalar(tag, value)

    def show(self, step: int, summaries: Iterable[tuple[str, Shown]], profile: MelProfile) -> None:
        """Write (tag, text, samples float32[S] or picture) of each of these summaries."""
        with self._at(step):
            for tag, shown in summaries:
                _summarise(tag, shown, profile)
            self._writer.flush()

    def close(self) -> None:
        """Flush everything."""
        self._writer.close()


def _summarise(tag: str, shown: Shown, profile: MelProfile) -> None:
    """Write a text, samples float32[S] or a picture to TensorBoard."""
    if isinstance(shown, str):
        tf.summary.text(tag, shown)
    elif isinstance(shown, np.ndarray):
        tf.summary.audio(tag, shown[np.newaxis, :, np.newaxis], profile.sample_rate, encoding="wav")
    else:
        image = tf.io.decode_png(png_bytes(shown), channels=3)[tf.newaxis]
        tf.summary.image(tag, image)
