"""The server: its paths, what every request passes before them, and its life from listening to the last sentence."""

import asyncio
import hmac
import os
import socket
import sys
import threading
import time
import webbrowser
from collections import OrderedDict
from collections.abc import AsyncIterator, Container
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from urllib.parse import urlsplit

import click
import numpy as np
import uvicorn
from prometheus_client import generate_latest
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from xtts.shared.errors import warn
from xtts.trainer.evaluation.synthesis_options import SynthesisOptions
from xtts.trainer.serve import metrics
from xtts.trainer.serve.settings import ServerSettings, listening_socket
from xtts.trainer.serve.speech_answers import Turns, answer, read_body
from xtts.trainer.serve.speech_requests import RequestError
from xtts.trainer.serve.warm_voice import Spoken, WarmVoice
from xtts.trainer.serve.wyoming_server import listen

_GRACE_SECONDS = 10
"""Most time that a sentence may take after a request to stop."""
_RECORDING_BYTES = 2**22
"""Of a client's recording at most: 47 s of mono at 44.1 kHz."""
_KEPT_MELS = 32
"""Answers whose mel can still be asked for."""
_PAGE = Path(__file__).with_name("page")
_PAGE_FILES = {"/": "index.html", "/page.js": "page.js", "/page.css": "page.css"}
_POLICY = (
    "default-src 'self'; connect-src 'self' blob:; media-src 'self' blob:; img-src 'self' data:; "
    "object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}
"""Of every answer."""


class Server:
    """The state behind the paths, used by the event loop."""

    def __init__(self, voice: WarmVoice, settings: ServerSettings) -> None:
        self.voice, self.settings = voice, settings
        self.turns = Turns(settings.max_requests)
        self._spoken: OrderedDict[str, Spoken] = OrderedDict()
        self._started = int(time.time())

    async def speech(self, request: Request) -> Response:
        """`POST /v1/audio/speech`: the sound of a text."""
        response, spoken = await answer(request, self.voice, self.turns, self.settings)
        self._spoken[response.headers["x-request-id"]] = spoken
        while len(self._spoken) > _KEPT_MELS:
            self._spoken.popitem(last=False)
        return response

    async def page(self, request: Request) -> Response:
        """A file of the page."""
        return FileResponse(_PAGE / _PAGE_FILES[request.scope["path"]])

    async def mel(self, request: Request) -> Response:
        """The log-mel of an answer so far, float32[T, M] little-endian; its request id is in the path."""
        spoken = self._spoken.get(request.path_params["request_id"])
        if spoken is None:
            raise RequestError(404, "no such request, or too long ago")
        mel = np.concatenate([np.empty((0, self.voice.mel_profile.mel_channels), np.float32), *spoken.mels])
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
                "sample_rate": offer.sample_rate, "hop_samples": self.voice.mel_profile.hop_samples,
                "options": SynthesisOptions.model_json_schema()["properties"],
                "takes_recordings": self.voice.source.takes_recording, "most_letters": offer.letters,
            }
        )  # fmt: skip

    async def imitate(self, request: Request) -> Response:
        """`PUT /v1/audio/voices/NAME`: a sound file, whose voice can be asked for from now on."""
        recording = await read_body(request, _RECORDING_BYTES, "audio/wav")
        await self.turns.step(partial(self.voice.imitate, request.path_params["voice"], recording))
        return Response(status_code=204)

    async def models(self, request: Request) -> Response:
        """The one model, as OpenAI's API lists them, and Open WebUI, which asks for `models`; or it alone."""
        model = {"id": self.voice.offer.model, "object": "model", "created": self._started, "owned_by": "lockstep"}
        if (asked := request.path_params.get("model", model["id"])) != model["id"]:
            raise RequestError(404, f"model: {asked!r:.60} is not here, {model['id']} is", param="model")
        alone = "model" in request.path_params
        return JSONResponse(model if alone else {"object": "list", "data": [model], "models": [model]})

    async def health(self, _: Request) -> Response:
        """200 while requests are taken."""
        closed = self.turns.closed
        content = {"status": "stopping" if closed else "ok", "queue_length": len(self.turns)}
        return JSONResponse(content, 503 if closed else 200)

    async def prometheus(self, _: Request) -> Response:
        """The metrics."""
        readings = metrics.Readings(self.turns, self.voice.synthesizer)
        return Response(generate_latest(metrics.REGISTRY) + generate_latest(readings), media_type=metrics.MEDIA_TYPE)

    @asynccontextmanager
    async def running(self, _: Starlette) -> AsyncIterator[None]:
        """Make the other numbers of evaluations ready while nobody speaks."""
        preparation = asyncio.create_task(self.turns.do_while_idle(self.voice.prepare()))
        try:
            yield
        finally:
            preparation.cancel()
            self.turns.end()


class Guard:
    """Middleware that refuses foreign web pages and strangers without the token, and counts the answers."""

    def __init__(self, app: ASGIApp, *, settings: ServerSettings, paths: Container[str], free: Container[str]) -> None:
        """Paths: those that exist, free: those without a token."""
        self._app, self._paths, self._free = app, paths, free
        self._token, self._origins = settings.token, settings.origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or hand it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                path = scope["path"] if scope["path"] in self._paths else "other"
                metrics.ANSWERS.labels(path, message["status"]).inc()
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        try:
            self._check(Headers(scope=scope), scope["path"])
        except RequestError as error:
            await (await _refusal(Request(scope), error))(scope, receive, send_guarded)
        else:
            await self._app(scope, receive, send_guarded)

    def _check(self, headers: Headers, path: str) -> None:
        origin = headers.get("origin")
        own = origin is None or urlsplit(origin).netloc.lower() == headers.get("host", "").lower()
        if not own and not {origin, "*"} & {*self._origins}:
            allowed = "only --allow-origin lets it in, or a proxy that passes the header Host on"
            raise RequestError(403, f"from another web page, {origin:.60}: {allowed}")
        if self._token is not None and path not in self._free:
            scheme, _, given = headers.get("authorization", "").partition(" ")
            if scheme.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), self._token.encode()):
                raise RequestError(401, "wrong or missing token, expected Authorization: Bearer TOKEN")


def make_app(server: Server) -> Starlette:
    """The application with its paths."""
    own = {
        "/v1/audio/speech": (server.speech, "POST"), "/metrics": (server.prometheus, "GET"),
        "/v1/audio/voices": (server.voices, "GET"), "/health": (server.health, "GET"),
        "/v1/models": (server.models, "GET"), "/v1/audio/models": (server.models, "GET"),
    }  # fmt: skip
    routes = [Route(path, handler, methods=[method]) for path, (handler, method) in own.items()]
    routes += [Route("/v1/audio/mel/{request_id}", server.mel), Route("/v1/models/{model}", server.models)]
    routes.append(Route("/v1/audio/voices/{voice}", server.imitate, methods=["PUT"]))
    routes += [Route(path, server.page) for path in _PAGE_FILES]
    settings, pages = server.settings, _PAGE_FILES.keys()
    middleware = [Middleware(Guard, settings=settings, paths={*own, *pages}, free={"/health", *pages})]
    if settings.origins:  # around the guard: browsers read its refusals too, and ask without a token what they may ask
        around = Middleware(
            CORSMiddleware, allow_origins=settings.origins, allow_methods=["*"], allow_headers=["*"],
            expose_headers=["x-warning", "x-request-id", "x-mel-shape", "retry-after"],
        )  # fmt: skip
        middleware.insert(0, around)
    if settings.token is None:
        # A page that has its name resolve to this machine would otherwise be of the same origin.
        hosts = ["localhost", "127.0.0.1", "[::1]", settings.host]
        middleware.append(Middleware(TrustedHostMiddleware, allowed_hosts=hosts, www_redirect=False))
    handlers = {RequestError: _refusal, HTTPException: _refusal, Exception: _failure}
    return Starlette(routes=routes, middleware=middleware, exception_handlers=handlers, lifespan=server.running)


async def _refusal(_: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException):  # a path or a method that does not exist
        return JSONResponse(RequestError(error.status_code, error.detail).content, error.status_code, error.headers)
    assert isinstance(error, RequestError)
    retry, challenge = {"retry-after": "1"}, {"www-authenticate": "Bearer"}
    headers = {429: retry, 503: retry, 401: challenge}.get(error.status)
    return JSONResponse(error.content, error.status, headers=headers)


async def _failure(_: Request, __: Exception) -> Response:
    return JSONResponse(RequestError(500, "the server failed; its log has the reason").content, 500)


def serve(settings: ServerSettings) -> None:
    """Load the voice and serve until SIGINT or SIGTERM; the sentence that is being spoken then is the last."""
    bound = listening_socket(settings.host, settings.port)
    wyoming = listening_socket(settings.host, settings.wyoming, "--wyoming") if settings.wyoming else None
    began = time.perf_counter()
    voice = WarmVoice(settings, warn, tell=click.echo)
    for _ in voice.prepare(settings.nfe[0]):
        pass
    click.echo(f"{voice.source.checkpoint}: engine {voice.synthesizer.engine}, {voice.synthesizer.readiness()}")
    server = Server(voice, settings)
    config = uvicorn.Config(
        make_app(server), log_level="warning", access_log=False, server_header=False, lifespan="on",
        limit_concurrency=settings.max_requests + 100, timeout_graceful_shutdown=_GRACE_SECONDS,
    )  # fmt: skip

    class Listening(uvicorn.Server):
        """Says where it listens, and ends the turns as soon as it is to stop."""

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if wyoming:
                await listen(wyoming, voice, server.turns, settings.timeout)
            _announce(settings, bound.getsockname()[1], time.perf_counter() - began)

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            self.force_exit = self.should_exit
            self.should_exit = server.turns.closed = True

    Listening(config).run(sockets=[bound])
    click.echo("stopped")
    os._exit(0)  # a step that is still being compiled for nobody is not waited for


def _announce(settings: ServerSettings, port: int, seconds: float) -> None:
    host = "127.0.0.1" if settings.host in ("0.0.0.0", "::") else settings.host
    address = f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"
    click.echo(f"ready after {seconds:.1f} s: {address} (Ctrl-C stops)")
    if settings.open_page and _has_display():
        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()


def _has_display() -> bool:
    return sys.platform in ("darwin", "win32") or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
