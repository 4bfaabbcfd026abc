"""Errors of object stores: retried where that may help, then reported in one line."""

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
"""Seconds before the second and the third attempt; Arrow retries a silent server for 6 s in each."""

_CREDENTIALS = (
    "give credentials of this store in the environment (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
    "GOOGLE_APPLICATION_CREDENTIALS, or AZURE_STORAGE_...) that may list, read and write in it"
)
_PERMANENT = (
    (("NO_SUCH_BUCKET", "NoSuchBucket", "ContainerNotFound"), "no such bucket", "check its name and the region"),
    (("INVALID_ACCESS_KEY_ID", "InvalidAccessKeyId"), "the store does not know these credentials", _CREDENTIALS),
    (("SIGNATURE_DOES_NOT_MATCH", "SignatureDoesNotMatch"), "the secret key is wrong", _CREDENTIALS),
    (("ACCESS_DENIED", "AccessDenied", "HTTP status 403", "PERMISSION_DENIED", "UNAUTHENTICATED"),
     "access denied: no credentials, or none with permission", _CREDENTIALS),
    (("No such host", "HTTP status 301", "PERMANENT_REDIRECT"), "the bucket is in another region", "set AWS_REGION"),
)  # fmt: skip
"""(fragments of Arrow's message, problem, fix) of errors that a retry cannot fix."""
_LOCAL_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EIO, errno.EMFILE)
"""Error numbers of the local disk; errors of a store have none."""
_NO_ANSWER = ("NETWORK_CONNECTION", "Could not resolve", "Could not connect", "UNAVAILABLE", "timed out")


def with_retries(url: StoreUrl, action: Callable[[], Result]) -> Result:
    """Return the action's result, after at most three attempts.

    Raises FileNotFoundError if there is no such object, OSError if the local disk is full or broken,
    `LockstepError` if the store refuses, does not answer or fails.
    """
    for pause in (*PAUSES, None):
        try:
            return action()
        except FileNotFoundError:
            raise
        except OSError as error:
            if error.errno in _LOCAL_ERRORS:
                raise
            explained, may_pass = _explain(url, error)
            if pause is None or not may_pass:
                raise explained from None
            time.sleep(pause)
        except (ValueError, NotImplementedError) as error:
            raise _explain(url, error)[0] from None
    raise AssertionError


@contextmanager
def rename_in_errors(folder: Path, url: str) -> Iterator[None]:
    """Replace a local folder by the URL that it stands for in the errors raised inside."""
    try:
        yield
    except LockstepError as error:
        texts = {
            name: getattr(error, name).replace(str(folder), url) for name in ("location", "found", "expected", "fix")
        }
        raise LockstepError(**texts, exit_code=error.exit_code) from None


def _explain(url: StoreUrl, error: Exception) -> tuple[LockstepError, bool]:
    """Return Arrow's error as one for users, and whether a retry may fix it."""
    for texts, problem, fix in _PERMANENT:
        if any(text in str(error) for text in texts):
            return LockstepError(str(url), found=problem, fix=fix), False
    problem, fix = "the store fails", "run the same command again"
    if any(text in str(error) for text in _NO_ANSWER):
        problem = "the store does not answer"
        fix = "check the network and, for a store of your own, AWS_ENDPOINT_URL; then run the same command again"
    detail = str(error).partition("\n")[0][:200]
    return LockstepError(str(url), found=f"{problem} ({detail})", fix=fix, exit_code=1), True
