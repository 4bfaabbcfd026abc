"""Responses to speech requests: streams of encoded audio, which end when the client leaves."""

import asyncio
import base64
import re
from collections.abc import AsyncIterator, Awaitable, Sequence
from typing import TypeVar

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from xtts.trainer.serve.request_queue import AudioChunk, RequestQueue
from xtts.trainer.serve.served_voice import Job, ServedVoice, SpeechResult
from xtts.trainer.serve.settings import ServerSettings
from xtts.trainer.serve.speech_requests import read_request
from xtts.trainer.speech.encodings import MEDIA_TYPES, Encoder
from xtts.trainer.web.requests import CLIENT_LEFT, RequestError, read_body

_MOST_WARNING = 1000
"""Bytes of a header; clients accept some thousands in all."""
_T = TypeVar("_T")


class ResponseStream:
    """The encoded audio of a job, as it becomes ready."""

    def __init__(self, queue: RequestQueue, job: Job, encoder: Encoder, timeout: float) -> None:
        """Begin the job; timeout: most seconds until the first chunk, and from one chunk to the next."""
        self._queue, self._encoder, self._timeout = queue, encoder, timeout
        self._chunks: asyncio.Queue[AudioChunk | RequestError] = asyncio.Queue()
        self._task = queue.begin(job, self._chunks.put_nowait)
        self._ended = False

    async def next_bytes(self) -> bytes | None:
        """Return the next bytes, never empty, or None after the last; `RequestError` after a failure or a timeout."""
        data = b""
        while not (data or self._ended):
            samples, self._ended = await self._next_chunk()
            data = await asyncio.to_thread(self._encoder.add, samples, last=self._ended)
        return data or None

    async def _next_chunk(self) -> AudioChunk:
        try:
            chunk = await asyncio.wait_for(self._chunks.get(), self._timeout)
        except TimeoutError:
            raise RequestError(504, f"no sound for {self._timeout:g} s, the server is busy; try again later") from None
        if isinstance(chunk, RequestError):
            raise chunk
        return chunk

    def close(self) -> None:
        """Leave the queue."""
        self._queue.drop(self._task)


async def respond(
    request: Request, voice: ServedVoice, queue: RequestQueue, settings: ServerSettings
) -> Response:
    """Speak a request.

    Waits for the first bytes, so that most failures have a status of their own; `RequestError` for these.
    """
    speech, warnings = read_request(await read_body(request, settings.body_bytes), voice.capabilities)
    result = SpeechResult(warnings=warnings)
    encoder = Encoder(speech.response_format, voice.mel_profile.sample_rate, streams=speech.streams)
    stream = ResponseStream(queue, voice.speak(speech, result), encoder, settings.timeout)
    try:
        first = await _while_connected(request, stream.next_bytes())
    except BaseException:
        stream.close()
        raise
    headers = warning_headers(result.warnings)
    rate = f";rate={encoder.sample_rate};channels=1" if speech.response_format == "pcm" else ""
    media_type = MEDIA_TYPES[speech.response_format] + rate
    if speech.streams:
        return _Stream(stream, first, media_type, headers)
    stream.close()
    if speech.timestamps:
        audio = base64.b64encode(first or b"").decode()
        return JSONResponse({"audio": audio, **result.times}, headers=headers)
    return Response(first, media_type=media_type, headers=headers)


def warning_headers(warnings: Sequence[str]) -> dict[str, str]:
    """Put warnings on one line, as the Latin-1 characters that stand for its UTF-8: starlette then writes UTF-8."""
    line = re.sub(r"[\0-\x1f\x7f]", " ", "; ".join(warnings)).encode()[:_MOST_WARNING]
    return {"x-warning": line.decode(errors="ignore").strip().encode().decode("latin-1")} if warnings else {}


class _Stream(StreamingResponse):
    """An HTTP response that sends the bytes of a stream as they become ready."""

    def __init__(self, stream: ResponseStream, first: bytes | None, media_type: str, headers: dict[str, str]) -> None:
        self._stream, self._first = stream, first
        super().__init__(self._bytes(), headers=headers, media_type=media_type)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        except RequestError:
            pass  # the status has been sent: a response without its end tells the client
        finally:
            self._stream.close()

    async def _bytes(self) -> AsyncIterator[bytes]:
        data = self._first
        while data is not None:
            yield data
            data = await self._stream.next_bytes()


async def _while_connected(request: Request, awaitable: Awaitable[_T]) -> _T:
    """Await a result, unless the client leaves first; then raise `RequestError`, which nobody reads."""
    result, left = asyncio.ensure_future(awaitable), asyncio.create_task(_until_disconnected(request))
    try:
        await asyncio.wait((result, left), return_when=asyncio.FIRST_COMPLETED)
        if result.done():
            return result.result()
        raise RequestError(CLIENT_LEFT, "the client left")
    finally:
        result.cancel()
        left.cancel()


async def _until_disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
