"""The paths of the server: speech, voices, health, metrics, and the page."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from xtts.trainer.evaluation.synthesis_options import SynthesisOptions
from xtts.trainer.serve.guard import Guard
from xtts.trainer.serve.metrics import MEDIA_TYPE, Metrics
from xtts.trainer.serve.request_queue import RequestQueue
from xtts.trainer.serve.settings import ServerSettings
from xtts.trainer.serve.speech_answers import SpeechAnswers
from xtts.trainer.serve.speech_requests import RequestError
from xtts.trainer.serve.warm_voice import Spoken, WarmVoice

_PAGE = Path(__file__).with_name("page")
_PAGE_FILES = {"/": "index.html", "/page.js": "page.js", "/page.css": "page.css"}
_KEPT_MELS = 32
"""Answers whose mel can still be asked for."""


class Server:
    """The state behind the paths, used by the event loop."""

    def __init__(self, voice: WarmVoice, settings: ServerSettings) -> None:
        self.voice, self.settings = voice, settings
        self.queue, self.metrics = RequestQueue(settings.limits.requests), Metrics()
        self._spoken: OrderedDict[str, Spoken] = OrderedDict()
        self._answers = SpeechAnswers(voice, self.queue, self.metrics, settings.limits)
        self._started = int(time.time())

    async def speech(self, request: Request) -> Response:
        """`POST /v1/audio/speech`: the sound of a text."""
        answer, name, spoken = await self._answers.answer(request)
        self._spoken[name] = spoken
        while len(self._spoken) > _KEPT_MELS:
            self._spoken.popitem(last=False)
        return answer

    async def mel(self, request: Request) -> Response:
        """The log-mel of an answer so far, float32[T, M] little-endian; its request id is in the path."""
        spoken = self._spoken.get(request.path_params["request_id"])
        if spoken is None:
            raise RequestError(404, "no such request, or too long ago")
        mel = np.concatenate([np.empty((0, self.voice.offer.mel_channels), np.float32), *spoken.mels])
        shape = {"x-mel-shape": f"{len(mel)},{mel.shape[1]}"}
        return Response(mel.astype("<f4").tobytes(), media_type="application/octet-stream", headers=shape)

    async def voices(self, _: Request) -> Response:
        """What a request may choose from."""
        offer = self.voice.offer
        return JSONResponse(
            {
                "model": offer.model, "engine": self.voice.synthesizer.engine,
                "voices": [{"id": name, "name": name} for name in offer.voices],
                "languages": offer.languages, "nfe": offer.nfe, "formats": offer.formats,
                "options": SynthesisOptions.model_json_schema()["properties"],
                "sample_rate": offer.sample_rate, "most_letters": offer.letters,
            }
        )  # fmt: skip

    async def models(self, _: Request) -> Response:
        """The one model, as OpenAI's API lists them."""
        model = {"id": self.voice.offer.model, "object": "model", "created": self._started, "owned_by": "lockstep"}
        return JSONResponse({"object": "list", "data": [model]})

    async def health(self, _: Request) -> Response:
        """200 while requests are taken."""
        status = "stopping" if self.queue.closed else "ok"
        return JSONResponse({"status": status, "queue_length": len(self.queue)}, 503 if self.queue.closed else 200)

    async def prometheus(self, _: Request) -> Response:
        """The metrics."""
        text = self.metrics.page(
            self.voice.totals,
            queue_length=len(self.queue),
            compile_seconds=self.voice.synthesizer.compile_seconds,
        )
        return PlainTextResponse(text, media_type=MEDIA_TYPE)

    @asynccontextmanager
    async def running(self, _: Starlette) -> AsyncIterator[None]:
        """Run the queue, and make the other numbers of evaluations ready while nobody speaks."""
        turns = asyncio.create_task(self.queue.run())
        self.queue.idle_work = self.voice.prepare()
        try:
            yield
        finally:
            turns.cancel()
            self.queue.end()


def make_app(server: Server) -> Starlette:
    """The application with its paths."""
    own = {
        "/v1/audio/speech": (server.speech, "POST"), "/voices": (server.voices, "GET"),
        "/v1/models": (server.models, "GET"), "/healthz": (server.health, "GET"),
        "/metrics": (server.prometheus, "GET"),
    }  # fmt: skip
    routes = [Route(path, handler, methods=[method]) for path, (handler, method) in own.items()]
    routes.append(Route("/v1/audio/mel/{request_id}", server.mel))
    routes += [Route(path, _file_handler(name)) for path, name in _PAGE_FILES.items()]
    guard = Middleware(
        Guard, token=server.settings.token, paths={*own, *_PAGE_FILES}, free={"/healthz", *_PAGE_FILES},
        answers=server.metrics.answers,
    )  # fmt: skip
    handlers = {RequestError: _refusal, HTTPException: _refusal, Exception: _failure}
    return Starlette(routes=routes, middleware=[guard], exception_handlers=handlers, lifespan=server.running)


def _file_handler(name: str) -> Callable[[Request], Awaitable[Response]]:
    async def send_file(_: Request) -> Response:
        return FileResponse(_PAGE / name)

    return send_file


async def _refusal(_: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException):  # a path or a method that does not exist
        error = RequestError(error.status_code, error.detail)
    assert isinstance(error, RequestError)
    headers = {"retry-after": "1"} if error.status in (429, 503) else None
    return JSONResponse(error.content, error.status, headers=headers)


async def _failure(_: Request, __: Exception) -> Response:
    return JSONResponse(RequestError(500, "the server failed; its log has the reason").content, 500)
