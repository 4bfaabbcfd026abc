"""`xtts-synth serve`: loads the voice, listens, and stops after the sentence that is being spoken."""

import asyncio
import os
import socket
import sys
import threading
import time
import webbrowser
from functools import partial
from types import FrameType

from xtts.shared.errors import LockstepError, warn
from xtts.trainer.serve.settings import ServerSettings, check_settings, listening_socket

_GRACE_SECONDS = 10
"""Most time that a sentence may take after a request to stop."""


def serve(settings: ServerSettings) -> None:
    """Serve until SIGINT or SIGTERM."""
    check_settings(settings)
    try:
        import starlette  # noqa: F401
        import uvicorn
    except ImportError as error:
        raise LockstepError(
            "serve", found=f"{error.name} is not installed", fix="pip install 'lockstep-tts[serve]'"
        ) from None
    from xtts.trainer.serve.app import Server, make_app
    from xtts.trainer.serve.warm_voice import WarmVoice

    bound = listening_socket(settings)
    began = time.perf_counter()
    voice = WarmVoice(settings, warn, tell=partial(print, flush=True))
    for _ in voice.prepare(settings.nfe[0]):
        pass
    print(f"{voice.source.checkpoint}: engine {voice.synthesizer.engine}, {voice.synthesizer.readiness()}", flush=True)
    server = Server(voice, settings)
    config = uvicorn.Config(
        make_app(server), log_level="warning", access_log=False, server_header=False, lifespan="on",
        limit_concurrency=settings.limits.requests + 100, timeout_graceful_shutdown=_GRACE_SECONDS,
    )  # fmt: skip

    class Listening(uvicorn.Server):
        """Says where it listens, and closes the queue as soon as it is to stop."""

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            self._loop = asyncio.get_running_loop()
            _announce(settings, bound.getsockname()[1], time.perf_counter() - began)

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            self.force_exit = self.should_exit
            self.should_exit = True
            self._loop.call_soon_threadsafe(server.queue.close)

    Listening(config).run(sockets=[bound])
    print("stopped", flush=True)
    os._exit(0)  # a step that is still being compiled for nobody is not waited for


def _announce(settings: ServerSettings, port: int, seconds: float) -> None:
    host = "127.0.0.1" if settings.host in ("0.0.0.0", "::") else settings.host
    address = f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"
    print(f"ready after {seconds:.1f} s: {address} (Ctrl-C stops)", flush=True)
    if settings.open_page and has_display():
        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()


def has_display() -> bool:
    """Whether a browser could be shown."""
    return sys.platform in ("darwin", "win32") or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
