"""Requests take turns on one thread, sentence by sentence: the model is not used by two threads at once."""

import asyncio
import sys
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from xtts.shared.errors import LockstepError
from xtts.trainer.serve.speech_requests import RequestError


class Part(NamedTuple):
    """What one step of a job gives."""

    data: bytes = b""
    """Bytes to send, if there are any yet."""
    last: bool = False
    """Whether the job ends with it."""


class Job:
    """One request in the queue."""

    def __init__(self, work: Iterator[Part]) -> None:
        self.work = work
        self.dropped = False
        self._parts: asyncio.Queue[Part | RequestError] = asyncio.Queue()
        self._ended = False

    def tell(self, part: Part | RequestError) -> None:
        """Hand over a part, or the reason of a failure."""
        self._parts.put_nowait(part)

    async def next_bytes(self) -> bytes | None:
        """The next bytes, never empty, or None after the last; `RequestError` if the work failed."""
        while not self._ended:
            part = await self._parts.get()
            if isinstance(part, RequestError):
                raise part
            self._ended = part.last
            if part.data:
                return part.data
        return None


class RequestQueue:
    """A bounded queue of jobs; after each step of its work a job goes to the end of the queue."""

    def __init__(self, most_requests: int) -> None:
        self._most_requests = most_requests
        self._thread = ThreadPoolExecutor(1, "speech")
        self._turns: asyncio.Queue[Job] = asyncio.Queue()
        self._active: set[Job] = set()
        self.closed = False
        self.idle_work: Iterator[Part] | None = None
        """Done step by step while nobody waits."""

    def __len__(self) -> int:
        """Requests that wait or speak."""
        return len(self._active)

    def submit(self, work: Iterator[Part]) -> Job:
        """Queue the work of a request; `RequestError` 429 if the queue is full, 503 once it is closed."""
        if self.closed:
            raise RequestError(503, "the server is stopping")
        if len(self._active) >= self._most_requests:
            raise RequestError(429, f"{self._most_requests} requests are waiting already; try again in a moment")
        job = Job(work)
        self._active.add(job)
        self._turns.put_nowait(job)
        return job

    def drop(self, job: Job) -> None:
        """Free the place of a job, finished or not; the sentence that it is speaking is its last."""
        job.dropped = True
        self._active.discard(job)

    def close(self) -> None:
        """Refuse new requests; those in the queue end after the sentence that is being spoken."""
        self.closed = True

    async def run(self) -> None:
        """Let the jobs take turns until cancelled."""
        while True:
            job = await self._next_job()
            if self.closed:
                job.tell(RequestError(503, "the server is stopping"))
            elif not job.dropped:
                part = await self._step(job.work)
                job.tell(part)
                if isinstance(part, Part) and not part.last:
                    self._turns.put_nowait(job)
                else:  # its client may read for a long time yet
                    self._active.discard(job)

    async def _next_job(self) -> Job:
        while self._turns.empty() and self.idle_work is not None and not self.closed:
            part = await self._step(self.idle_work)
            if not isinstance(part, Part) or part.last:
                self.idle_work = None
        return await self._turns.get()

    async def _step(self, work: Iterator[Part]) -> Part | RequestError:
        return await asyncio.get_running_loop().run_in_executor(self._thread, _advance, work)

    def end(self) -> None:
        """Give the thread back."""
        self._thread.shutdown(wait=False, cancel_futures=True)


def _advance(work: Iterator[Part]) -> Part | RequestError:
    """One step of a job's work, on the speech thread."""
    try:
        return next(work, Part(last=True))
    except LockstepError as error:
        return RequestError(400, str(error), param="input")
    except Exception:
        traceback.print_exc(file=sys.stderr)  # the server's own fault: its log has the reason, the client not
        return RequestError(500, "the speech could not be made; the server's log has the reason")
