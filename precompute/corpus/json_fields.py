"""Values of JSON objects that came from elsewhere, checked one by one."""

import math
from typing import Any

from xtts.shared.errors import LockstepError


def seconds_of(entry: dict[str, Any], key: str, where: str) -> float:
    """A finite number; a `LockstepError` for anything else."""
    value = entry.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not _is_finite(value):
        raise LockstepError(where, found=f"{key} is {value!r:.60}", expected="a number of seconds")
    return float(value)


def string_of(entry: dict[str, Any], key: str, where: str) -> str:
    """A string, empty where there is none or it is null; a `LockstepError` for anything else."""
    value = entry.get(key)
    if not isinstance(value, str | None):
        raise LockstepError(where, found=f"{key} is {value!r:.60}", expected="a string")
    return value or ""


def name_of(entry: dict[str, Any], keys: tuple[str, ...], where: str) -> str:
    """What the first of these keys that has a value says, numbers as text; empty where none has one.

    Raises:
        LockstepError: The value is neither a string nor a whole number.
    """
    for key in keys:
        value = entry.get(key)
        if value is not None and value != "":
            if isinstance(value, bool) or not isinstance(value, str | int):
                raise LockstepError(where, found=f"{key} is {value!r:.60}", expected="a string")
            return str(value).strip()
    return ""


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # JSON spells integers of any length
        return False
