"""URLs of object stores, and how they differ from paths; nothing is opened here."""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, urlencode

from xtts.shared.errors import LockstepError
from xtts.shared.system.machine import user_cache

SCHEMES = ("s3", "gs", "gcs", "abfs", "abfss")
"""As `pyarrow.fs` calls Amazon S3 and all that speak its language, Google Cloud Storage, and Azure's Blob Storage."""


@dataclass(frozen=True)
class StoreUrl:
    """A folder of objects, or one object."""

    place: str
    """As in s3://bucket/folder, without options and without a slash at the end."""
    options: str = ""
    """What followed the question mark, as in region=eu-west-1."""

    def __str__(self) -> str:
        """The place, for messages."""
        return self.place

    @property
    def whole(self) -> str:
        """As it was given: the place and its options."""
        return f"{self.place}?{self.options}" if self.options else self.place

    @property
    def name(self) -> str:
        """The last part of the place."""
        return self.place.rpartition("/")[2]

    @property
    def digest(self) -> str:
        """12 hexadecimal digits that name a local folder for it; two stores of one bucket name have other options."""
        return hashlib.sha256(self.whole.encode()).hexdigest()[:12]

    def child(self, name: str) -> "StoreUrl":
        """An object below it."""
        return StoreUrl(f"{self.place}/{name}", self.options)

    @property
    def parent(self) -> "StoreUrl":
        """The folder it is in."""
        return StoreUrl(self.place.rpartition("/")[0], self.options)

    def local_folder(self, kind: str) -> Path:
        """The folder in the user's cache that stands for it, of its name."""
        return user_cache() / kind / self.digest / self.name

    def for_arrow(self) -> str:
        """The URL that `pyarrow.fs` is given: with the region of the environment, and limits of time."""
        options = dict(parse_qsl(self.options))
        if self.place.startswith("s3:"):
            region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
            elsewhere = "endpoint_override" in options or "AWS_ENDPOINT_URL" in os.environ
            if "region" not in options and (region or elsewhere):
                options["region"] = region or "us-east-1"
            options.setdefault("allow_delayed_open", "true")  # a small object is one request
        elif self.place.startswith(("gs:", "gcs:")):
            options.setdefault("retry_limit_seconds", "30")  # Arrow's own is 15 minutes
        return f"{self.place}?{urlencode(options)}" if options else self.place


Location = Path | StoreUrl
"""A local folder or file, or one in an object store."""


def is_url(text: str) -> bool:
    """Whether it is meant as a URL; a path with :// in it would have an empty name in the middle."""
    return "://" in text


def location(text: str | os.PathLike[str] | StoreUrl) -> Location:
    """A path, or the URL of an object store; what is one already stays as it is.

    A `LockstepError` for another scheme, no bucket, or credentials in it, which would end in logs.
    """
    if isinstance(text, StoreUrl):
        return text
    given = os.fspath(text)
    if not is_url(given):
        return Path(given)
    scheme, _, rest = given.partition("://")
    place, _, options = rest.partition("?")
    bucket = place.partition("/")[0]
    shown = f"{scheme}://{place.rpartition('@')[2]}"
    if scheme not in SCHEMES:
        expected = f"a path, or a URL that begins with {', '.join(f'{one}://' for one in SCHEMES)}"
        raise LockstepError(shown, found=f"{scheme}://", expected=expected)
    if not bucket:
        raise LockstepError(shown, found="no bucket", expected=f"{scheme}://BUCKET/FOLDER")
    if "@" in bucket and (not scheme.startswith("abfs") or ":" in bucket):
        fix = "put them into the environment, as in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        raise LockstepError(shown, found="credentials in the URL", expected=f"{scheme}://BUCKET/FOLDER", fix=fix)
    return StoreUrl(f"{scheme}://{place}".rstrip("/"), options)
