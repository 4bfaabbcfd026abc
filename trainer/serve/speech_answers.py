"""One speech request from its body to its last byte: read, queued, sent, and dropped when the client leaves."""

import asyncio
import base64
import json
import secrets
from collections.abc import AsyncIterator, Awaitable
from typing import TypeVar
from urllib.parse import quote

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from xtts.trainer.serve.encodings import MEDIA_TYPES
from xtts.trainer.serve.metrics import Metrics
from xtts.trainer.serve.request_queue import RequestQueue
from xtts.trainer.serve.settings import Limits
from xtts.trainer.serve.speech_requests import RequestError, SpeechRequest, read_request
from xtts.trainer.serve.warm_voice import Spoken, WarmVoice

_BODY_SECONDS = 10.0
"""Most time for a client to send its request."""
_CLIENT_LEFT = 499
"""The status that servers write down for it; nobody receives it."""
_T = TypeVar("_T")


class SpeechAnswers:
    """Answers speech requests within the limits."""

    def __init__(self, voice: WarmVoice, queue: RequestQueue, metrics: Metrics, limits: Limits) -> None:
        self._voice, self._queue, self._metrics, self._limits = voice, queue, metrics, limits

    async def answer(self, request: Request) -> tuple[Response, str, Spoken]:
        """The answer, its request id, and what is known of it besides; `RequestError` if there is none.

        The first sound is waited for, so that most failures have a status of their own.
        """
        asked = read_request(await _read_body(request, self._limits.body_bytes), self._voice.offer)
        name, sound = secrets.token_hex(8), _Sound(self._voice, self._queue, self._metrics, asked, self._limits.seconds)
        try:
            first = await _while_connected(request, sound.next_bytes())
        except BaseException:
            sound.close(whole=False)
            raise
        headers = {"x-request-id": name}
        if sound.spoken.warnings:
            headers["x-warning"] = quote("; ".join(sound.spoken.warnings), safe=" ;:,")
        if asked.streams:
            return _Stream(sound, first, self._media_type(asked), headers), name, sound.spoken
        sound.close(whole=True)
        return Response(first, media_type=self._media_type(asked), headers=headers), name, sound.spoken

    def _media_type(self, asked: SpeechRequest) -> str:
        if asked.stream_format == "sse":
            return "text/event-stream"
        media_type = MEDIA_TYPES[asked.response_format]
        rate = f";rate={self._voice.offer.sample_rate};channels=1" if asked.response_format == "pcm" else ""
        return media_type + rate


class _Sound:
    """The bytes of one answer, as they become ready."""

    def __init__(
        self, voice: WarmVoice, queue: RequestQueue, metrics: Metrics, asked: SpeechRequest, seconds: float
    ) -> None:
        self.spoken = Spoken()
        self._queue, self._metrics, self._began = queue, metrics, asyncio.get_running_loop().time()
        self._seconds, self._first, self._closed = seconds, True, False
        self._job = queue.submit(voice.speak(asked, self.spoken))

    async def next_bytes(self) -> bytes | None:
        """The next bytes, or None after the last; `RequestError` 504 once the time is over."""
        try:
            async with asyncio.timeout_at(self._began + self._seconds):
                data = await self._job.next_bytes()
        except TimeoutError:
            raise RequestError(504, f"not spoken within {self._seconds:g} s; try a shorter text") from None
        if self._first:
            self._metrics.first_sound.add(asyncio.get_running_loop().time() - self._began)
            self._first = False
        return data

    def close(self, *, whole: bool) -> None:
        """Free the place in the queue, and count what was spoken; whole: the client has all of it."""
        if self._closed:
            return
        self._closed = True
        self._queue.drop(self._job)
        self._metrics.abandoned += not whole
        self._metrics.seconds.add(asyncio.get_running_loop().time() - self._began)


class _Stream(StreamingResponse):
    """Sends the bytes of an answer as they become ready."""

    def __init__(self, sound: _Sound, first: bytes | None, media_type: str, headers: dict[str, str]) -> None:
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


async def _read_body(request: Request, most_bytes: int) -> bytes:
    """The JSON of a request; `RequestError` for another type, too many bytes, or a client that sends too slowly."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise RequestError(415, "expected Content-Type: application/json")
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
