"""What every request passes before it is answered: host, origin, token; and the headers of every answer."""

import hmac
import ipaddress
from collections import Counter
from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from xtts.trainer.serve.speech_requests import RequestError

_POLICY = (
    "default-src 'self'; connect-src 'self' blob:; media-src 'self' blob:; img-src 'self' data:; "
    "object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}


class Guard:
    """Middleware that refuses what a stranger or a foreign web page could send, and counts the answers."""

    def __init__(
        self, app: ASGIApp, *, token: str | None, paths: Collection[str], free: Collection[str],
        answers: Counter[tuple[str, int]],
    ) -> None:  # fmt: skip
        """Paths: those that exist, free: those without a token, answers: counts by path and status."""
        self._app, self._token, self._paths, self._free, self._answers = app, token, paths, free, answers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or hand it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                path = scope["path"] if scope["path"] in self._paths else "other"
                self._answers[path, message["status"]] += 1
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        try:
            self._check(Headers(scope=scope), scope["path"])
        except RequestError as error:
            challenge = {"www-authenticate": "Bearer"} if error.status == 401 else None
            answer = JSONResponse(error.content, error.status, headers=challenge)
            await answer(scope, receive, send_guarded)
            return
        await self._app(scope, receive, send_guarded)

    def _check(self, headers: Headers, path: str) -> None:
        host = headers.get("host", "")
        # A page that has its name resolve to this machine would otherwise be of the same origin.
        if self._token is None and not _is_this_machine(host):
            raise RequestError(403, "a server without a token answers under the name of this machine only")
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
            raise RequestError(403, "requests from other web pages are refused")
        if self._token is not None and path not in self._free:
            scheme, _, given = headers.get("authorization", "").partition(" ")
            if scheme.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), self._token.encode()):
                raise RequestError(401, "wrong or missing token, expected Authorization: Bearer TOKEN")


def _is_this_machine(host: str) -> bool:
    """Whether a Host header names the loopback."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
