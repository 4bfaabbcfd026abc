"""What goes wrong with object stores: tried again where that may help, and then said in one line."""

import errno
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from xtts.shared.errors import LockstepError
from xtts.shared.storage.urls import StoreUrl

Result = TypeVar("Result")

PAUSES = (0.5, 2.0)
"""Seconds before the second and the third attempt; Arrow's own attempts at a silent server take 6 s each time."""

_CREDENTIALS = (
    "give credentials of this store in the environment (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
    "GOOGLE_APPLICATION_CREDENTIALS, or AZURE_STORAGE_... ), and the right to list, read and write there"
)
_FOREVER = (
    (("NO_SUCH_BUCKET", "NoSuchBucket", "ContainerNotFound"), "no such bucket", "look at its name, and at the region"),
    (("INVALID_ACCESS_KEY_ID", "InvalidAccessKeyId"), "the store does not know these credentials", _CREDENTIALS),
    (("SIGNATURE_DOES_NOT_MATCH", "SignatureDoesNotMatch"), "the secret key is another one", _CREDENTIALS),
    (("ACCESS_DENIED", "AccessDenied", "HTTP status 403", "PERMISSION_DENIED", "UNAUTHENTICATED"),
     "access denied: no credentials, or without the right to do this", _CREDENTIALS),
    (("No such host", "HTTP status 301", "PERMANENT_REDIRECT"), "the bucket is in another region", "set AWS_REGION"),
)  # fmt: skip
"""(parts of Arrow's message, what is found, what helps): another attempt does not."""
_OF_THIS_MACHINE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EIO, errno.EMFILE)
"""Errors of the local disk; those of a store have no number."""
_SILENT = ("NETWORK_CONNECTION", "Could not resolve", "Could not connect", "UNAVAILABLE", "timed out")


def attempted(where: StoreUrl, action: Callable[[], Result]) -> Result:
    """The action's result, at the third attempt at the latest.

    Raises FileNotFoundError where there is no such object, OSError where the local disk is full or broken,
    `LockstepError` where the store refuses, does not answer or fails.
    """
    for pause in (*PAUSES, None):
        try:
            return action()
        except FileNotFoundError:
            raise
        except OSError as error:
            if error.errno in _OF_THIS_MACHINE:
                raise
            if pause is None or _known(error):
                raise explained(where, error) from None
            time.sleep(pause)
        except (ValueError, NotImplementedError) as error:
            raise explained(where, error) from None
    raise AssertionError


@contextmanager
def called(folder: Path, name: str) -> Iterator[None]:
    """Errors about a local folder call it by this name: that of the store it stands for."""
    try:
        yield
    except LockstepError as error:
        where, found, fix = (part.replace(str(folder), name) for part in (error.where, error.found, error.fix))
        raise LockstepError(where, found=found, expected=error.expected, fix=fix, exit_code=error.exit_code) from None


def _known(error: Exception) -> tuple[str, str] | None:
    found = ((what, fix) for parts, what, fix in _FOREVER if any(part in str(error) for part in parts))
    return next(found, None)


def explained(where: StoreUrl, error: Exception) -> LockstepError:
    """What Arrow says of a store, in a line."""
    known = _known(error)
    if known:
        return LockstepError(str(where), found=known[0], fix=known[1])
    detail = str(error).partition("\n")[0][:200]
    if any(part in str(error) for part in _SILENT):
        fix = "look at the network and, for a store of your own, at AWS_ENDPOINT_URL; then run the same command again"
        return LockstepError(str(where), found=f"the store does not answer ({detail})", fix=fix, exit_code=1)
    return LockstepError(str(where), found=f"the store fails ({detail})", fix="run the same command again", exit_code=1)
