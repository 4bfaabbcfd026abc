"""The address of a server: its socket, the page in a browser, the files that pages share."""

import os
import socket
import sys
import threading
import webbrowser
from pathlib import Path

from xtts.shared.errors import LockstepError

SHARED = {f"/{name}": Path(__file__).with_name(name) for name in ("page.css", "parts.js")}
"""Style and script of every page, by path."""


def listening_socket(host: str, port: int, option: str = "--port") -> socket.socket:
    """Bind a socket; `LockstepError` if the port is taken or forbidden. Port 0 takes a free one."""
    family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    bound = socket.socket(family, kind)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind(address)
    except OSError as error:
        bound.close()
        raise LockstepError(
            f"{option} {port}", found=f"cannot be used ({error.strerror})", fix="choose another, such as --port 0"
        ) from None
    return bound


def page_address(host: str, port: int) -> str:
    """Return the URL of a server's page."""
    host = "127.0.0.1" if host in ("0.0.0.0", "::") else host
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def open_page(address: str) -> None:
    """Open a page in the browser, where there is a display."""
    displays = (os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    if sys.platform in ("darwin", "win32") or any(displays):
        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
