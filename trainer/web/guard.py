"""The guard before a server of this machine: host names, foreign pages, the token, the headers of every response."""

import hmac
import re
from collections.abc import Container
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from xtts.trainer.web.requests import RequestError, refusal

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
"""Headers of every response that does not set its own."""


class Guard:
    """Middleware that refuses foreign pages, host names and requests without the token."""

    def __init__(
        self, app: ASGIApp, *, host: str = "127.0.0.1", token: str | None = None, public: Container[str] = (),
        remedies: tuple[str, str] = ("", ""),
    ) -> None:
        """host: the address; token: secret of all paths but the public ones.

        remedies: ends of the messages for a foreign host name and for another page.
        """
        self._app, self._public, self._token = app, public, token
        self._hosts, self._remedies = {"localhost", "127.0.0.1", "[::1]", host}, remedies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request, or pass it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            self._check(Headers(scope=scope), scope["path"])
        except RequestError as error:
            await (await refusal(Request(scope), error))(scope, receive, send_guarded)
        else:
            await self._app(scope, receive, send_guarded)

    def _check(self, headers: Headers, path: str) -> None:
        host = re.sub(r":\d+$", "", headers.get("host", "").lower())
        if self._token is None and host not in self._hosts:
            # Otherwise a page whose host name resolves to this machine would have the same origin.
            raise RequestError(400, f"host name {host!r:.60} is not this machine's{self._remedies[0]}")
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc.lower() != headers.get("host", "").lower():
            raise RequestError(403, f"origin {origin:.60} not allowed{self._remedies[1]}")
        if self._token is not None and path not in self._public:
            scheme, _, token = headers.get("authorization", "").partition(" ")
            if scheme.lower() != "bearer" or not hmac.compare_digest(token.strip().encode(), self._token.encode()):
                raise RequestError(401, "wrong or missing token, expected Authorization: Bearer TOKEN")
