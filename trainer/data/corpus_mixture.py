"""The order of a bucket that holds several corpora, or one with a weight: a stream of each, mixed clip by clip.

Each corpus is an endless stream of its own (`BucketOrder`), which knows nothing of the others. An epoch takes a fixed
number of clips of each, spread evenly over it: a corpus of N clips with weight w gives round(w N) of them. Its own
stream goes on in the next epoch, so that 0.5 takes every clip once in two epochs, and 2 takes it twice in one. A batch
therefore holds every corpus in its proportion, and a position of the mixture is a position in each stream, in closed
form.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from xtts.trainer.data.clip_order import BucketOrder


@dataclass(frozen=True, kw_only=True)
class CorpusPart:
    """One corpus of a bucket."""

    order: BucketOrder
    """The stream of its clips."""
    shards: tuple[int, ...]
    """Places of its shards among all of the bucket."""
    clips: int
    """Clips that an epoch takes."""


@dataclass(frozen=True, kw_only=True)
class CorpusMixture:
    """The stream of one bucket: which corpus gives its n-th clip, and which of its clips that is."""

    seed: int
    """Of the run."""
    parts: tuple[CorpusPart, ...]

    @property
    def clips(self) -> int:
        """Clips in one epoch."""
        return sum(part.clips for part in self.parts)

    @property
    def turns(self) -> np.ndarray:
        """int64[clips]: the part that gives each clip of an epoch."""
        return _turns(tuple(part.clips for part in self.parts))

    def positions(self, consumed: int) -> list[int]:
        """Clips of each part before the stream's position `consumed`."""
        epochs, rest = divmod(consumed, self.clips)
        taken = np.bincount(self.turns[:rest], minlength=len(self.parts))
        return [epochs * part.clips + int(more) for part, more in zip(self.parts, taken, strict=True)]

    def locate(self, consumed: int, count: int) -> list[tuple[int, int]]:
        """(shard, record) of the `count` clips after the stream's position `consumed`."""
        turns = self.turns[np.arange(consumed, consumed + count) % self.clips]
        streams = []
        for number, (part, position) in enumerate(zip(self.parts, self.positions(consumed), strict=True)):
            located = part.order.locate(position, int((turns == number).sum()))
            streams.append(iter([(part.shards[shard], record) for shard, record in located]))
        return [next(streams[number]) for number in turns]


@lru_cache(maxsize=128)
def _turns(clips: tuple[int, ...]) -> np.ndarray:
    """Numbers of streams, each as often as it gives clips and as evenly spread as that allows."""
    numbers = np.repeat(np.arange(len(clips)), clips)
    places = np.concatenate([(np.arange(count) + 0.5) / count for count in clips])
    return numbers[np.lexsort((numbers, places))]
