"""Faulty texts: a wrong encoding, HTML, escapes, tags; the faults are in `broken_texts.yaml`."""

import re
from functools import cache
from pathlib import Path

import yaml

from xtts.shared.cache.clip_index import Clip
from xtts.shared.errors import LockstepError

_SIGNS = re.compile(r"[^ !#$'()*+,./0-9:;@A-Z\]^_`a-z|~\x22-]|=[0-9A-F]{2}|[a-z]\?[a-z]|^b['\"]")
"""What faulty texts have, looked for first."""


def check_text(clip: Clip, data: Path) -> Clip:
    """The clip; a `LockstepError` where its text is faulty. data: its corpus."""
    if _SIGNS.search(clip.text):
        for fault, pattern, fix in _faults():
            if found := pattern.search(clip.text):
                shown = f"{found[0]!r} in clip {clip.id}, {clip.text[:60]!r}"
                raise LockstepError(str(data), found=f"{fault}: {shown}", expected="plain text", fix=fix)
    return clip


@cache
def _faults() -> list[tuple[str, re.Pattern[str], str]]:
    """(fault, what shows it, what to do)."""
    table = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
    whole = [(each, each["pattern"].replace("{continuation}", table["continuation"])) for each in table["faults"]]
    return [(each["fault"], re.compile(pattern), each["fix"]) for each, pattern in whole]
