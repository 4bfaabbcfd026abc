"""URLs of object stores, and how they differ from paths; nothing is opened."""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, urlencode

from xtts.shared.errors import LockstepError
from xtts.shared.system.machine import user_cache

SCHEMES = ("s3", "gs", "gcs", "abfs", "abfss")
"""Schemes of `pyarrow.fs`: Amazon S3 and compatible stores, Google Cloud Storage, Azure Blob Storage."""


@dataclass(frozen=True)
class StoreUrl:
    """URL of a folder of objects, or of one object."""

    base: str
    """URL such as s3://bucket/folder, without options or a slash at the end."""
    options: str = ""
    """Text after the question mark, such as region=eu-west-1."""

    def __str__(self) -> str:
        """The URL without options, for messages."""
        return self.base

    @property
    def full(self) -> str:
        """The URL with its options."""
        return f"{self.base}?{self.options}" if self.options else self.base

    @property
    def name(self) -> str:
        """The last component."""
        return self.base.rpartition("/")[2]

    @property
    def digest(self) -> str:
        """12 hexadecimal digits that name a local folder; with the options, as two stores may share a bucket name."""
        return hashlib.sha256(self.full.encode()).hexdigest()[:12]

    def child(self, name: str) -> "StoreUrl":
        """Return the URL of an object below this one."""
        return StoreUrl(f"{self.base}/{name}", self.options)

    @property
    def parent(self) -> "StoreUrl":
        """URL of the containing folder."""
        return StoreUrl(self.base.rpartition("/")[0], self.options)

    def local_folder(self, kind: str) -> Path:
        """Return the folder in the user's cache for local copies; its name is the URL's."""
        return user_cache() / kind / self.digest / self.name

    def for_arrow(self) -> str:
        """Return the URL for `pyarrow.fs`: with the environment's region, and time limits."""
        options = dict(parse_qsl(self.options))
        if self.base.startswith("s3:"):
            region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
            other_endpoint = "endpoint_override" in options or "AWS_ENDPOINT_URL" in os.environ
            if "region" not in options and (region or other_endpoint):
                options["region"] = region or "us-east-1"
            options.setdefault("allow_delayed_open", "true")  # a small object is one request
        elif self.base.startswith(("gs:", "gcs:")):
            options.setdefault("retry_limit_seconds", "30")  # Arrow's own is 15 minutes
        return f"{self.base}?{urlencode(options)}" if options else self.base


PathOrUrl = Path | StoreUrl
"""A local path, or a URL in an object store."""


def path_or_url(text: str | os.PathLike[str] | StoreUrl) -> PathOrUrl:
    """Parse a path or the URL of an object store.

    Raises `LockstepError` for another scheme, a missing bucket, or credentials, which would end up in logs.
    """
    if isinstance(text, StoreUrl):
        return text
    given = os.fspath(text)
    if "://" not in given:  # a path with it would have an empty component
        return Path(given)
    scheme, _, rest = given.partition("://")
    base, _, options = rest.partition("?")
    bucket = base.partition("/")[0]
    shown = f"{scheme}://{base.rpartition('@')[2]}"
    if scheme not in SCHEMES:
        expected = f"a path, or a URL that begins with {', '.join(f'{name}://' for name in SCHEMES)}"
        raise LockstepError(shown, found=f"{scheme}://", expected=expected)
    if not bucket:
        raise LockstepError(shown, found="no bucket", expected=f"{scheme}://BUCKET/FOLDER")
    if "@" in bucket and (not scheme.startswith("abfs") or ":" in bucket):
        fix = "put them into the environment, as in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        raise LockstepError(shown, found="credentials in the URL", expected=f"{scheme}://BUCKET/FOLDER", fix=fix)
    return StoreUrl(f"{scheme}://{base}".rstrip("/"), options)
