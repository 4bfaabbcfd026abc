"""The queue of speech requests: their jobs take turns on all cores, step by step."""

import asyncio
import sys
import traceback
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import numpy as np

from xtts.shared.errors import LockstepError
from xtts.shared.system.machine import usable_cores
from xtts.trainer.serve.served_voice import Job
from xtts.trainer.web.requests import RequestError

_T = TypeVar("_T")


AudioChunk = tuple[np.ndarray, bool]
"""Samples of a piece of a text, float32[S] in -1 to 1, and whether the text ends with it."""


class RequestQueue:
    """Requests that wait or speak: each does one step of its job, then the others take their turns.

    There is a thread for each core. They take the steps, mels and sounds, in the order of their requests. A
    request asks for its next piece when it has the sound of the last, or sooner if there are fewer requests than cores.
    """

    def __init__(self, most_requests: int) -> None:
        self._most_requests, self._cores = most_requests, usable_cores()
        self._threads = ThreadPoolExecutor(self._cores, "speech")
        self._tasks: set[asyncio.Task[None]] = set()
        self.closed = False
        """Whether new requests are refused; the others end after the step that is running."""

    def __len__(self) -> int:
        """Number of requests that wait or speak."""
        return len(self._tasks)

    def begin(self, job: Job, send: Callable[[AudioChunk | RequestError], None]) -> asyncio.Task[None]:
        """Run a job; `send` gets its audio, or the error that ends it.

        Raises:
            RequestError: 429 if there are too many requests, 503 if the queue is closed.
        """
        if self.closed:
            raise RequestError(503, "the server is stopping")
        if len(self) >= self._most_requests:
            raise RequestError(429, "too many requests are waiting; try again in a moment")
        task = asyncio.create_task(self._run(job, send))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)  # its client may still read for a long time
        return task

    def drop(self, task: asyncio.Task[None]) -> None:
        """Remove a request, finished or not; the step that is running is its last."""
        task.cancel()
        self._tasks.discard(task)

    async def _run(self, job: Job, send: Callable[[AudioChunk | RequestError], None]) -> None:
        ahead, last = deque[asyncio.Future[np.ndarray]](), False
        try:
            while not last:
                piece = await self.step(partial(next, job))
                last = piece.last
                ahead.append(self.step(piece.vocode))
                while ahead and (last or ahead[0].done() or len(ahead) * len(self) >= self._cores):
                    send((await ahead.popleft(), last and not ahead))
        except RequestError as error:
            send(error)
        finally:
            for step in ahead:
                step.cancel()

    def step(self, action: Callable[[], _T]) -> asyncio.Future[_T]:
        """Run a step on a thread when its turn comes; the future has its result, or `RequestError` if it fails."""
        return asyncio.get_running_loop().run_in_executor(self._threads, self._run_step, action)

    def _run_step(self, action: Callable[[], _T]) -> _T:
        if self.closed:
            raise RequestError(503, "the server is stopping")
        try:
            return action()
        except LockstepError as error:
            raise RequestError(400, str(error), param="input") from None
        except Exception:
            traceback.print_exc(file=sys.stderr)  # the server's own fault: the reason is for its log, not for clients
            raise RequestError(500, "synthesis failed; see the server's log") from None
