"""Settings of `xtts-synth serve`: the voice, the address and the limits."""

import ipaddress
import socket
from dataclasses import dataclass
from pathlib import Path

from xtts.shared.errors import LockstepError
from xtts.trainer.speech.synthesis_options import Solver, SynthesisOptions

_SHORTEST_TOKEN = 16


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    """The options of the command, which documents them and has their defaults."""

    host: str
    port: int
    wyoming: int | None
    """Port of Home Assistant's protocol; None for no such server."""
    token: str | None
    nfe: tuple[int, ...]
    solver: Solver
    """Default of requests, as is the loudness."""
    loudness: float | str
    vocoder: str | None
    speaker_wav: tuple[Path, ...]
    max_letters: int
    max_requests: int
    timeout: float
    open_page: bool

    @property
    def body_bytes(self) -> int:
        """Largest request in bytes: every character may be escaped, those beyond the first Unicode plane twice."""
        return 12 * self.max_letters + 4096

    def synthesis(self, nfe: int) -> SynthesisOptions:
        """Options for `nfe` evaluations; `LockstepError` if nfe and solver do not fit together."""
        return SynthesisOptions(nfe=nfe, solver=self.solver, loudness=self.loudness)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a host; `LockstepError` for a name without an address."""
    try:
        addresses = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise LockstepError("--host", found=f"{host!r} has no address", expected="such as 127.0.0.1") from None
    return all(ipaddress.ip_address(str(address[4][0]).partition("%")[0]).is_loopback for address in addresses)


def check_server_settings(settings: ServerSettings) -> None:
    """Raise `LockstepError` for settings that the server must not start with.

    These are an address beyond this machine without a token, a token that is easily guessed, and a number of
    evaluations that the solver cannot make.
    """
    token = settings.token
    if token is not None and (len(token) < _SHORTEST_TOKEN or not (token.isascii() and token.isprintable())):
        raise LockstepError("--token", found=f"of length {len(token)}", expected=f"{_SHORTEST_TOKEN} or more of ASCII")
    if token is None and not is_loopback(settings.host):
        raise LockstepError(
            "--host", found=f"{settings.host} is reachable from other machines", expected="a --token as well",
            fix="set XTTS_TOKEN to a long random text, or leave --host out",
        )
    if len(set(settings.nfe)) < len(settings.nfe):
        raise LockstepError("--nfe", found="a number twice", expected="each once, the default first")
    for nfe in settings.nfe:
        settings.synthesis(nfe)
