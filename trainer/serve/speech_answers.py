"""Speech requests, each from its body to its last byte: they take turns on all cores, and end when a client leaves."""

import asyncio
import base64
import json
import re
import secrets
import sys
import traceback
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import TypeVar

import numpy as np
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from xtts.shared.errors import LockstepError
from xtts.shared.system.machine import usable_cores
from xtts.trainer.serve import metrics
from xtts.trainer.serve.settings import ServerSettings
from xtts.trainer.serve.speech_requests import RequestError, SpeechRequest, read_request
from xtts.trainer.serve.warm_voice import Spoken, WarmVoice, Work
from xtts.trainer.synth.encodings import MEDIA_TYPES, Encoder

_BODY_SECONDS = 10.0
"""Most time for a client to send its request."""
_CLIENT_LEFT = 499
"""The status that servers write down for it; nobody receives it."""
_MOST_WARNING = 1000
"""Bytes of a header, of which clients take some thousands in all."""
_T = TypeVar("_T")
Heard = tuple[np.ndarray, bool] | RequestError
"""The samples of a piece, float32[S] in -1 to 1, and whether it is the last; or why there are none."""


class Turns:
    """Requests that wait or speak: each does a step of its work, then it is the others' turn.

    There is a thread for each core. They take the steps, mels and sounds, in the order in which they were asked for. A
    request asks for its next piece when it has the sound of the last, or sooner if there are fewer requests than cores.
    """

    def __init__(self, most_requests: int) -> None:
        self._most_requests, self._cores = most_requests, usable_cores()
        self._threads = ThreadPoolExecutor(self._cores, "speech")
        self._tasks: set[asyncio.Task[None]] = set()
        self.closed = False
        """Once it is true new requests are refused; the others end after the step that is being done."""

    def __len__(self) -> int:
        """Requests that wait or speak."""
        return len(self._tasks)

    def begin(self, work: Work, tell: Callable[[Heard], None]) -> asyncio.Task[None]:
        """Do the work of a request, whose sound is told; `RequestError` 429 if there are too many, 503 once closed."""
        if self.closed:
            raise RequestError(503, "the server is stopping")
        if len(self) >= self._most_requests:
            raise RequestError(429, "too many requests are waiting already; try again in a moment")
        task = asyncio.create_task(self._work(work, tell))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)  # its client may read for a long time yet
        return task

    def drop(self, task: asyncio.Task[None]) -> None:
        """Free the place of a request, finished or not; the step that is being done is its last."""
        task.cancel()
        self._tasks.discard(task)

    async def do_while_idle(self, work: Work) -> None:
        """Do some work step by step while there are no requests."""
        done = object()
        with suppress(RequestError):
            while self._tasks or await self.step(partial(next, work, done)) is not done:
                if self._tasks:
                    await asyncio.wait(self._tasks)

    def end(self) -> None:
        """Give the threads back."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _work(self, work: Work, tell: Callable[[Heard], None]) -> None:
        ahead, last = deque[asyncio.Future[np.ndarray]](), False
        try:
            while not last:
                piece = await self.step(partial(next, work))
                if piece is None:
                    continue
                last = piece.last
                ahead.append(self.step(piece.sound))
                while ahead and (last or ahead[0].done() or len(ahead) * len(self) >= self._cores):
                    tell((await ahead.popleft(), last and not ahead))
        except RequestError as error:
            tell(error)
        finally:
            for step in ahead:
                step.cancel()

    def step(self, action: Callable[[], _T]) -> asyncio.Future[_T]:
        """The result of a step, done on a thread when its turn comes; `RequestError` if it fails."""
        return asyncio.get_running_loop().run_in_executor(self._threads, self._do, action)

    def _do(self, action: Callable[[], _T]) -> _T:
        """One step, on a thread; `RequestError` if it fails."""
        if self.closed:
            raise RequestError(503, "the server is stopping")
        try:
            return action()
        except LockstepError as error:
            raise RequestError(400, str(error), param="input") from None
        except Exception:
            traceback.print_exc(file=sys.stderr)  # the server's own fault: its log has the reason, the client not
            raise RequestError(500, "the speech could not be made; the server's log has the reason") from None


class Sound:
    """The bytes of one answer, as they become ready."""

    def __init__(self, turns: Turns, work: Work, encoder: Encoder, seconds: float) -> None:
        """seconds: most time from now to the first sound, and from one sound to the next."""
        self._turns, self._encoder, self._seconds = turns, encoder, seconds
        self._began = asyncio.get_running_loop().time()
        self._parts: asyncio.Queue[Heard] = asyncio.Queue()
        self._task = turns.begin(work, self._parts.put_nowait)
        self._ended = False

    @property
    def age(self) -> float:
        """Seconds since it was asked for."""
        return asyncio.get_running_loop().time() - self._began

    async def next_bytes(self) -> bytes | None:
        """The next bytes, never empty, or None after the last; `RequestError` after a failure or too long a time."""
        data = b""
        while not (data or self._ended):
            samples, self._ended = await self._next_samples()
            data = await asyncio.to_thread(self._encoder.add, samples, last=self._ended)
        return data or None

    async def _next_samples(self) -> tuple[np.ndarray, bool]:
        try:
            part = await asyncio.wait_for(self._parts.get(), self._seconds)
        except TimeoutError:
            raise RequestError(504, f"no sound for {self._seconds:g} s, the server is busy; try again later") from None
        if isinstance(part, RequestError):
            raise part
        return part

    def close(self, *, whole: bool) -> None:
        """Free the place among the requests, and count what was spoken; whole: the client has all of it."""
        self._turns.drop(self._task)
        del self._encoder  # the collector of cycles may close its data before its file, which then complains
        metrics.ABANDONED.inc(not whole)
        metrics.REQUEST_SECONDS.observe(self.age)


async def answer(request: Request, voice: WarmVoice, turns: Turns, settings: ServerSettings) -> tuple[Response, Spoken]:
    """The answer, with its request id in `x-request-id`, and what is known of it besides.

    The first sound is waited for, so that most failures have a status of their own; `RequestError` for these.
    """
    asked, warnings = read_request(await read_body(request, settings.body_bytes), voice.offer)
    spoken = Spoken(warnings=warnings)
    encoder = Encoder(asked.response_format, voice.offer.sample_rate, streams=asked.streams)
    sound = Sound(turns, voice.speak(asked, spoken), encoder, settings.timeout)
    try:
        first = await _while_connected(request, sound.next_bytes())
    except BaseException:
        sound.close(whole=False)
        raise
    metrics.FIRST_SOUND_SECONDS.observe(sound.age)
    headers = {"x-request-id": secrets.token_hex(8)}
    if spoken.warnings:
        headers["x-warning"] = _header_text("; ".join(spoken.warnings))
    media_type = _media_type(asked, voice.offer.sample_rate)
    if asked.streams:
        return _Stream(sound, first, media_type, headers), spoken
    sound.close(whole=True)
    if asked.timestamps:
        audio = base64.b64encode(first or b"").decode()
        return JSONResponse({"audio": audio, **spoken.times}, headers=headers), spoken
    return Response(first, media_type=media_type, headers=headers), spoken


def _header_text(text: str) -> str:
    """A text on one line, in the Latin-1 characters that stand for its UTF-8: what starlette writes is UTF-8 again."""
    line = re.sub(r"[\0-\x1f\x7f]", " ", text).encode()[:_MOST_WARNING]
    return line.decode(errors="ignore").strip().encode().decode("latin-1")


def _media_type(asked: SpeechRequest, sample_rate: int) -> str:
    if asked.stream_format == "sse":
        return "text/event-stream"
    rate = f";rate={sample_rate};channels=1" if asked.response_format == "pcm" else ""
    return MEDIA_TYPES[asked.response_format] + rate


class _Stream(StreamingResponse):
    """Sends the bytes of an answer as they become ready."""

    def __init__(self, sound: Sound, first: bytes | None, media_type: str, headers: dict[str, str]) -> None:
        self._sound, self._first, self._whole = sound, first, False
        body = self._events() if media_type == "text/event-stream" else self._parts()
        super().__init__(body, headers=headers, media_type=media_type)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        except RequestError:
            pass  # the status has been sent: an answer without its end tells the client
        finally:
            self._sound.close(whole=self._whole)

    async def _parts(self) -> AsyncIterator[bytes]:
        data = self._first
        while data is not None:
            yield data
            data = await self._sound.next_bytes()
        self._whole = True

    async def _events(self) -> AsyncIterator[bytes]:
        async for data in self._parts():
            yield _event({"type": "speech.audio.delta", "audio": base64.b64encode(data).decode()})
        yield _event({"type": "speech.audio.done"})


def _event(content: dict[str, str]) -> bytes:
    return f"data: {json.dumps(content)}\n\n".encode()


async def read_body(request: Request, most_bytes: int, media_type: str = "application/json") -> bytes:
    """What a request sends; `RequestError` for another type, too many bytes, or a client that sends too slowly."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != media_type:
        raise RequestError(415, f"expected Content-Type: {media_type}")
    body = bytearray()
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            async for part in request.stream():
                body += part
                if len(body) > most_bytes:
                    raise RequestError(413, f"more than {most_bytes} bytes")
    except TimeoutError:
        raise RequestError(408, f"the request did not arrive within {_BODY_SECONDS:g} s") from None
    except ClientDisconnect:
        raise RequestError(_CLIENT_LEFT, "the client left") from None
    return bytes(body)


async def _while_connected(request: Request, wanted: Awaitable[_T]) -> _T:
    """The result of `wanted`, unless the client leaves first; then `RequestError`, which nobody reads."""
    work, left = asyncio.ensure_future(wanted), asyncio.create_task(_until_gone(request))
    try:
        await asyncio.wait((work, left), return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            return work.result()
        raise RequestError(_CLIENT_LEFT, "the client left")
    finally:
        work.cancel()
        left.cancel()


async def _until_gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
