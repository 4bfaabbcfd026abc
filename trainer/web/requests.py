"""HTTP requests that are refused, and their bodies."""

import asyncio

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

_BODY_SECONDS = 10.0
"""Longest time for a client to send its request."""
CLIENT_LEFT = 499
"""Status that servers log for a client that left; nobody receives it."""


class RequestError(Exception):
    """The refusal of a request: an HTTP status, and the error object that OpenAI clients expect."""

    def __init__(self, status: int, message: str, *, param: str | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.param = status, message, param

    @property
    def content(self) -> dict[str, dict[str, str | None]]:
        """Body of the response, for JSON."""
        kinds = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
        kind = kinds.get(self.status, "invalid_request_error" if self.status < 500 else "server_error")
        return {"error": {"message": self.message, "type": kind, "param": self.param, "code": None}}


async def refusal(_: Request, error: Exception) -> Response:
    """Return the response to a request that raised an error, as a handler of starlette's."""
    if isinstance(error, HTTPException):  # a path or a method that does not exist
        return JSONResponse(RequestError(error.status_code, error.detail).content, error.status_code, error.headers)
    if not isinstance(error, RequestError):
        error = RequestError(500, "internal error; see the server's log")
    retry, challenge = {"retry-after": "1"}, {"www-authenticate": "Bearer"}
    headers = {429: retry, 503: retry, 401: challenge}.get(error.status)
    return JSONResponse(error.content, error.status, headers=headers)


REFUSALS = dict.fromkeys((RequestError, HTTPException, Exception), refusal)
"""Exception handlers of an application."""


def check_media_type(request: Request, media_type: str) -> None:
    """Raise `RequestError` for a body of another media type."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != media_type:
        raise RequestError(415, f"expected Content-Type: {media_type}")


async def read_body(request: Request, most_bytes: int, media_type: str = "application/json") -> bytes:
    """Read a request's body; `RequestError` for another media type, too many bytes, or a client that is too slow."""
    check_media_type(request, media_type)
    body = bytearray()
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            async for data in request.stream():
                body += data
                if len(body) > most_bytes:
                    raise RequestError(413, f"more than {most_bytes} bytes")
    except TimeoutError:
        raise RequestError(408, f"the request did not arrive within {_BODY_SECONDS:g} s") from None
    except ClientDisconnect:
        raise RequestError(CLIENT_LEFT, "the client left") from None
    return bytes(body)
