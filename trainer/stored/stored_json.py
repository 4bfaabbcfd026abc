"""The JSON files of runs, checkpoints and exported folders, which may be damaged or come from elsewhere."""

import json
from pathlib import Path
from typing import Any

from xtts.shared.errors import LockstepError, read_text


def read_json(path: Path, origin: str, version: int | None = None) -> dict[str, Any]:
    """The JSON object in a file; `LockstepError` if it cannot be read, or has another `format_version`.

    origin: what such a file is part of, for messages; version: None if the file has no version of its own.
    """
    if not path.exists():
        raise LockstepError(str(path), found="no such file", expected=origin)
    try:
        fields = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise LockstepError(str(path), found=f"cannot be read ({error})") from None
    if not isinstance(fields, dict):
        raise LockstepError(str(path), found="not a JSON object")
    if version is not None and (stored := fields.get("format_version")) != version:
        raise LockstepError(str(path), found=f"format version {stored!r}", expected=str(version))
    return fields
