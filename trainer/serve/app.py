"""The HTTP server: its paths, its middleware, and its life from listening to the last sentence."""

import os
import socket
import time
from functools import partial
from pathlib import Path
from types import FrameType

import click
import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from xtts.shared.errors import warn
from xtts.shared.languages import find_language
from xtts.trainer.serve.request_queue import RequestQueue
from xtts.trainer.serve.served_voice import ServedVoice
from xtts.trainer.serve.settings import ServerSettings
from xtts.trainer.serve.speech_requests import FORMATS
from xtts.trainer.serve.speech_responses import respond, warning_headers
from xtts.trainer.serve.wyoming_server import listen
from xtts.trainer.speech.synthesis_options import SynthesisOptions
from xtts.trainer.speech.voice_source import Source
from xtts.trainer.web.address import SHARED, listening_socket, open_page, page_address
from xtts.trainer.web.guard import Guard
from xtts.trainer.web.requests import REFUSALS, RequestError, read_body

_GRACE_SECONDS = 10
"""Longest time for the sentence in progress after a request to stop."""
_RECORDING_BYTES = 2**22
"""Largest recording of a client: 47 s of mono at 44.1 kHz."""
_PAGE = Path(__file__).with_name("page")
_PAGE_FILES = {"/": _PAGE / "index.html", "/page.js": _PAGE / "page.js", "/speak.css": _PAGE / "speak.css", **SHARED}
_REMEDIES = (
    ": start the server with XTTS_TOKEN set, and give clients the token as their API key",
    "; if it is this server's own, let the proxy pass the header Host on",
)
"""For foreign host names, and for other pages."""


class Server:
    """Handlers of the paths and their state, used by the event loop."""

    def __init__(self, voice: ServedVoice, settings: ServerSettings) -> None:
        self.voice, self.settings = voice, settings
        self.queue = RequestQueue(settings.max_requests)
        self._started = int(time.time())

    async def speech(self, request: Request) -> Response:
        """`POST /v1/audio/speech`: speak a text."""
        return await respond(request, self.voice, self.queue, self.settings)

    async def page(self, request: Request) -> Response:
        """Return a file of the page."""
        return FileResponse(_PAGE_FILES[request.scope["path"]])

    async def voices(self, _: Request) -> Response:
        """List the choices of a request."""
        capabilities = self.voice.capabilities
        return JSONResponse(
            {
                "model": capabilities.model,
                "voices": [{"id": name, "name": name} for name in capabilities.voices],
                "languages": capabilities.languages, "voice_languages": capabilities.voice_languages,
                "directions": {code: find_language(code).direction for code in capabilities.languages},
                "nfe": capabilities.nfe, "formats": FORMATS,
                "sample_rate": self.voice.mel_profile.sample_rate,
                "options": SynthesisOptions.model_json_schema()["properties"],
                "takes_recordings": self.voice.source.takes_recording, "most_letters": self.settings.max_letters,
            }
        )

    async def imitate(self, request: Request) -> Response:
        """`PUT /v1/audio/voices/NAME`: add the voice of a sound file."""
        recording = await read_body(request, _RECORDING_BYTES, "audio/wav")
        doubts = await self.queue.step(partial(self.voice.imitate, request.path_params["voice"], recording))
        return Response(status_code=204, headers=warning_headers(doubts))

    async def models(self, request: Request) -> Response:
        """List the one model, for OpenAI's clients and Open WebUI, which reads `models`; or describe it alone."""
        name, wanted = self.voice.capabilities.model, request.path_params.get("model")
        model = {"id": name, "object": "model", "created": self._started, "owned_by": "lockstep"}
        if wanted is None:
            return JSONResponse({"object": "list", "data": [model], "models": [model]})
        if wanted != name:
            raise RequestError(404, f"unknown model {wanted!r:.60}; this server has {name}", param="model")
        return JSONResponse(model)

    async def health(self, _: Request) -> Response:
        """Report 200 while requests are taken, else 503."""
        closed = self.queue.closed
        content = {"status": "stopping" if closed else "ok", "queue_length": len(self.queue)}
        return JSONResponse(content, 503 if closed else 200)


def make_app(server: Server) -> Starlette:
    """Make the application with its paths."""
    api = {
        "/v1/audio/speech": (server.speech, "POST"), "/v1/audio/voices": (server.voices, "GET"),
        "/health": (server.health, "GET"),
        "/v1/models": (server.models, "GET"), "/v1/audio/models": (server.models, "GET"),
    }
    routes = [Route(path, handler, methods=[method]) for path, (handler, method) in api.items()]
    routes.append(Route("/v1/models/{model}", server.models))
    routes.append(Route("/v1/audio/voices/{voice}", server.imitate, methods=["PUT"]))
    routes += [Route(path, server.page) for path in _PAGE_FILES]
    settings = server.settings
    guard = Middleware(
        Guard, host=settings.host, token=settings.token, public={"/health", *_PAGE_FILES}, remedies=_REMEDIES
    )
    return Starlette(routes=routes, middleware=[guard], exception_handlers=REFUSALS)


def serve(source: Source, settings: ServerSettings) -> None:
    """Load the voice and serve until SIGINT or SIGTERM; the sentence in progress is then the last."""
    bound = listening_socket(settings.host, settings.port)
    wyoming = listening_socket(settings.host, settings.wyoming, "--wyoming") if settings.wyoming else None
    began = time.perf_counter()
    voice = ServedVoice(source, settings, warn)
    click.echo(source.folder)
    server = Server(voice, settings)
    config = uvicorn.Config(
        make_app(server), log_level="warning", access_log=False, server_header=False, lifespan="off",
        limit_concurrency=settings.max_requests + 100, timeout_graceful_shutdown=_GRACE_SECONDS,
    )

    class Listening(uvicorn.Server):
        """Server that prints its address, and closes the queue as soon as it must stop."""

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if wyoming:
                await listen(wyoming, voice, server.queue, settings.timeout, settings.body_bytes)
            address = page_address(settings.host, bound.getsockname()[1])
            click.echo(f"ready after {time.perf_counter() - began:.1f} s: {address} (Ctrl-C stops)")
            if settings.open_page:
                open_page(address)

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            self.force_exit = self.should_exit
            self.should_exit = server.queue.closed = True

    Listening(config).run(sockets=[bound])
    click.echo("stopped")
    os._exit(0)  # do not wait for a sentence that nobody hears
