"""The texts of a cache's clips, and their recordings as they lie in the corpus."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from xtts.shared.audio.decode import AudioProblem, Segment, read_recording
from xtts.shared.cache.cache_spec import load_spec
from xtts.shared.cache.clip_index import Clip, kept_rows, read_index
from xtts.shared.errors import LockstepError
from xtts.trainer.evaluation.held_out_clips import HeldOutClip


def clip_texts(cache: Path) -> dict[str, str]:
    """The text of each clip by its id."""
    return {name: clip.text for name, clip in _clips(cache).items()}


def read_corpus_audio(cache: Path, data: Path, clips: Sequence[HeldOutClip]) -> list[np.ndarray]:
    """The recordings of some clips at the rate of the cache's mels: float32[S] each.

    Raises:
        LockstepError: `data` is not the folder of the corpus, or an archive holds the recordings.
    """
    indexed, rate = _clips(cache), load_spec(cache).mel_profile.sample_rate
    return [_read(data, indexed[clip.clip_id], rate) for clip in clips]


def _clips(cache: Path) -> dict[str, Clip]:
    rows = kept_rows(read_index(cache / load_spec(cache).index_file))
    return {row.clip.id: row.clip for row in rows}


def _read(data: Path, clip: Clip, rate: int) -> np.ndarray:
    path = data / clip.source
    segment = None if clip.start is None or clip.duration is None else Segment(clip.start, clip.duration)
    try:
        samples: np.ndarray = read_recording(path, segment).at(rate)
    except (AudioProblem, OSError) as error:
        raise LockstepError(
            "--data", found=f"{path} cannot be read ({error})", expected=f"the recording of clip {clip.id}, as a file",
            fix="give the folder of the cache's corpus, unpacked",
        ) from None  # fmt: skip
    return samples
