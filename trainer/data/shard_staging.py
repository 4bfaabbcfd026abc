"""Training on a cache in an object store: a thread copies shards in the order in which the clips come.

A stream reads its shards group by group (`BucketOrder`). Before it opens the shards of a group it takes a ticket out of
a queue, which waits inside the graph while there is none. The thread puts the ticket there once copies of all shards of
the group are on the disk, and keeps them until the stream takes the ticket of the next group but one: it reads
the two at most. All other copies may be removed for those that are needed sooner.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from heapq import merge
from pathlib import Path
from types import TracebackType
from typing import Self, cast

import tensorflow as tf

from xtts.shared.cache.cache_copy import CacheCopy
from xtts.shared.cache.cache_spec import Shard
from xtts.shared.errors import LockstepError
from xtts.shared.storage.object_store import REQUESTS_AT_ONCE
from xtts.trainer.data.clip_order import BucketOrder

_LOOK_SECONDS = 0.05
_PATIENCE_SECONDS, _LONGEST_WITHOUT_ROOM = 1.0, 300.0
"""Without a new copy while a stream waits: until it is decided again what to copy, and until an error."""
_EPOCHS_AHEAD = 2
"""How far ahead shards are copied where there is room: then all are here."""
_NO_TICKET, _MOST_ASKED_AT_THE_END = -1, 2
"""What a stream is given when there will be no further ticket, which ends it, and how often it may ask then."""
Gate = Callable[[tf.Tensor], tf.Tensor]
"""Number of a group, int64[], to bool[]: True once its shards may be opened, False if they never will be."""


@contextmanager
def open_staging(copy: CacheCopy | None) -> "Iterator[ShardStaging | None]":
    """What copies the shards of a remote cache, whose errors name the store; None for another cache."""
    if copy is None:
        yield None
        return
    with copy.named(), ShardStaging(copy) as staging:
        yield staging


@dataclass(kw_only=True)
class _Stream:
    """One order of clips, as far as it was read."""

    order: BucketOrder
    shards: Sequence[Shard]
    """Those that the order counts."""
    first: int
    """The group at which it begins."""
    epoch_clips: int
    """Clips of it that the run takes in an epoch."""
    tickets: tf.queue.FIFOQueue
    given: int = 0
    """Tickets so far."""
    held: dict[int, set[str]] = field(default_factory=dict)
    """Group with a ticket to the names of its shards."""

    @property
    def waiting(self) -> int:
        """Tickets that the stream has not taken yet."""
        return int(self.tickets.size())

    def group(self, number: int) -> tuple[list[Shard], int]:
        """(shards of a group, the stream's position where it begins)."""
        places, start = self.order.group_at(number)
        return [self.shards[place] for place in places], start

    @property
    def reads(self) -> int:
        """The group whose ticket it took last; the one before its first at the beginning."""
        return self.first + self.given - self.waiting - 1

    def upcoming(self) -> Iterator[tuple[float, Shard]]:
        """(epochs until it is read, shard), the soonest first, from the next ticket on.

        A group is read soon if it follows the one that is read now: the bound has room for both of every stream.
        """
        number, reads = self.first + self.given, self.reads
        _, here = self.group(max(reads, self.first))
        for group in range(number, number + _EPOCHS_AHEAD * self.order.groups):
            shards, start = self.group(group)
            for shard in shards:
                yield (start - here) / self.epoch_clips if group > reads + 1 else 0.0, shard


class ShardStaging:
    """The thread and its streams; its error is raised by `check`, and by leaving the block with another error."""

    def __init__(self, copy: CacheCopy) -> None:
        self._copy, self._streams = copy, list[_Stream]()
        self._validation, self._validation_here = list[Shard](), threading.Event()
        self._lock, self._ending = threading.Lock(), threading.Event()
        self._error: Exception | None = None
        self._running = dict[str, Future[bool]]()
        self._refused = False
        self._missing, self._keep = deque[Shard](), set[Path]()
        self._seen, self._moved = tuple[tuple[int, int], ...](), time.monotonic()
        self._thread = threading.Thread(target=self._run, name="staging", daemon=True)

    def __enter__(self) -> Self:
        return self

    def start(self, validation: Sequence[Shard], streams: Iterable[tuple[BucketOrder, Sequence[Shard]]] = ()) -> None:
        """Begin, with the shards that validation reads: they stay until the end.

        streams: what there will be a `gate` for. A `LockstepError` where the bound does not hold what they may read at
        once, two groups each.
        """
        self._validation = list(validation)
        least = sum(shard.bytes for shard in validation)
        for order, shards in streams:
            sizes = sorted((shard.bytes for shard in shards), reverse=True)
            least += sum(sizes[: 2 * order.group_size])
        if least > self._copy.stage.limit_bytes:
            raise self._copy.too_small(least)
        self._thread.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ending.set()
        self._end_streams()
        if self._thread.is_alive():
            self._thread.join()
        self._copy.stage.close()
        if kind is not None and issubclass(kind, LockstepError):  # it says that the streams have ended
            self.check()

    def check(self) -> None:
        """Raise what made the thread give up."""
        if self._error is not None:
            raise self._error

    def wait_for_validation(self) -> None:
        """Return when the validation shards are here."""
        self._validation_here.wait()
        self.check()

    def gate(self, order: BucketOrder, shards: Sequence[Shard], consumed: int, epoch_clips: int) -> Gate:
        """What a stream that begins at the position `consumed` asks before it opens the shards of a group.

        epoch_clips: clips of it that the run takes in an epoch.
        """
        own = replace(order)  # it remembers epochs, and belongs to the thread
        with tf.device("CPU:0"):
            tickets = tf.queue.FIFOQueue(8, tf.int64, shapes=[])
        stream = _Stream(
            order=own, shards=shards, first=order.find(consumed).group, epoch_clips=epoch_clips, tickets=tickets
        )
        with self._lock:
            self._streams.append(stream)

        def wait(group: tf.Tensor) -> tf.Tensor:
            return tf.equal(tickets.dequeue(), group)

        return cast(Gate, tf.autograph.experimental.do_not_convert(wait))

    def _run(self) -> None:
        try:
            with ThreadPoolExecutor(REQUESTS_AT_ONCE) as pool:
                while not self._ending.wait(_LOOK_SECONDS):
                    self._advance(pool)
        except Exception as error:  # whatever it is: the streams would wait for ever
            self._error = error
            self._validation_here.set()
            self._end_streams()

    def _end_streams(self) -> None:
        """Let streams that wait go: TensorFlow may crash where an iterator goes while its graph waits for a queue."""
        with self._lock:
            for stream in self._streams:
                stream.tickets.enqueue_many(tf.constant([_NO_TICKET] * _MOST_ASKED_AT_THE_END, tf.int64))

    def _advance(self, pool: ThreadPoolExecutor) -> None:
        """Give the tickets that can be given, and start the next copies."""
        with self._lock:
            streams = list(self._streams)
        if not self._validation_here.is_set() and self._pin({shard.file for shard in self._validation}):
            self._validation_here.set()
        for stream in streams:
            self._release(stream)
            if stream.waiting == 0:
                self._give_ticket(stream)
        ended = [name for name, done in self._running.items() if done.done()]
        done = [self._running.pop(name).result() for name in ended]
        self._moved = time.monotonic() if any(done) else self._moved
        self._refused = self._refused or not all(done)
        self._look_ahead(streams)
        while self._missing and len(self._running) < REQUESTS_AT_ONCE:
            shard = self._missing.popleft()
            self._running[shard.file] = pool.submit(self._copy.copy_one, shard, keep=self._keep)

    def _look_ahead(self, streams: Sequence[_Stream]) -> None:
        """Decide again what to copy where a stream went on, or where copies of before are gone or had no room."""
        seen = tuple((stream.given, stream.waiting) for stream in streams)
        starved = not self._validation_here.is_set() or any(not waiting for _, waiting in seen)
        still = time.monotonic() - self._moved
        idle = not self._running and not self._missing
        stuck = idle and (self._refused or (starved and still > _PATIENCE_SECONDS))
        if stuck and still > _LONGEST_WITHOUT_ROOM:
            raise LockstepError(
                str(self._copy.stage.root), found="no room for the next shards: other runs use all that is here",
                fix="raise data.stage_gb, or give this run another folder with data.stage", exit_code=1,
            )  # fmt: skip
        if seen == self._seen and not stuck:
            return
        self._seen, self._refused, wanted = seen, False, self._wanted(streams)
        self._keep = {self._copy.path(shard) for shard in wanted}
        self._missing = deque(
            shard for shard in wanted if shard.file not in self._running and not self._copy.path(shard).exists()
        )

    def _wanted(self, streams: Sequence[_Stream]) -> list[Shard]:
        """What is to be here: validation, what is being read, then what is read next while the bound allows it."""
        held = {name for stream in streams for names in stream.held.values() for name in names}
        found = {shard.file: shard for shard in self._validation}
        found |= {shard.file: shard for stream in streams for shard in stream.shards if shard.file in held}
        left = self._copy.stage.limit_bytes - sum(shard.bytes for shard in found.values())
        for _, shard in merge(*(stream.upcoming() for stream in streams), key=lambda item: item[0]):
            if shard.file not in found:
                left -= shard.bytes
                if left < 0:
                    break
                found[shard.file] = shard
        return list(found.values())

    def _release(self, stream: _Stream) -> None:
        """Let go of the groups before the one that the stream reads."""
        reads = stream.reads
        passed = [number for number in stream.held if number < reads]
        for number in passed:
            names = stream.held.pop(number)
            still = set[str]().union(*stream.held.values())
            self._copy.stage.unpin([self._copy.folder / name for name in names - still])

    def _give_ticket(self, stream: _Stream) -> None:
        number = stream.first + stream.given
        names = {shard.file for shard in stream.group(number)[0]}
        if self._pin(names):
            stream.held[number] = names
            stream.given += 1
            stream.tickets.enqueue(tf.constant(number, tf.int64))

    def _pin(self, names: set[str]) -> bool:
        return self._copy.stage.pin([self._copy.folder / name for name in names])
