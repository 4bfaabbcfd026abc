"""Audio objects of a remote corpus, fetched for as long as they are read (in workers)."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from uuid import uuid4

from xtts.precompute.corpus.corpus_files import is_audio
from xtts.shared.errors import LockstepError
from xtts.shared.storage.object_store import Identity, ObjectStore
from xtts.shared.storage.urls import StoreUrl

FETCHED = ".fetched"
"""Folder of the copies, in the one that stands for the corpus."""
_TIMES = 2**31 * 10**9
"""Times of files, in ns, that every file system can hold."""


def time_of(identity: Identity) -> int:
    """The time that says which object it is."""
    return int.from_bytes(hashlib.sha256(identity.etag.encode()).digest()[:8], "big") % _TIMES


@contextmanager
def fetched(url: StoreUrl, root: Path, source: str) -> Iterator[Path]:
    """A file with the bytes of a corpus' audio, for as long as the block takes.

    Raises:
        LockstepError: The object cannot be read, is gone, or is not the one that the build found.
    """
    stands, copy = root / source, root / FETCHED / f"{uuid4().hex}{PurePosixPath(source).suffix}"
    if not is_audio(source) or not stands.exists():
        yield stands
        return
    try:
        with copy.open("wb") as out:
            identity = ObjectStore(url).copy_with_identity(source, out)
        if time_of(identity) != stands.stat().st_mtime_ns:
            raise _unlike(url, source, "changed while the cache was being built")
        yield copy
    except FileNotFoundError:
        raise _unlike(url, source, "gone since the cache began to be built") from None
    finally:
        copy.unlink(missing_ok=True)


def _unlike(url: StoreUrl, source: str, found: str) -> LockstepError:
    fix = "let the corpus rest and run the same command again"
    return LockstepError(str(url.child(source)), found=found, fix=fix, exit_code=1)
