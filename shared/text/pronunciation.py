# ruff: noqa: RUF002 - IPA letters look like others
"""Pronunciations that people give: `[[fəˈnɛtɪk]]` in a text.

What is in double brackets is phonemes as they are, for the tokenizer `phonemes`; whatever else reads or cuts a text
leaves it alone.
"""

import re
from collections.abc import Callable

GIVEN = re.compile(r"\[\[([^\[\]\n]+)\]\]")
_PLACE = "\ufdd0"  # no character of any text


def outside_given(text: str, change: Callable[[str], str]) -> str:
    """The text after a change that does not see what is in double brackets, but that something stands there."""
    given = GIVEN.finditer(text)
    if "[[" not in text:
        return change(text)
    changed = change(GIVEN.sub(_PLACE, text))
    return re.sub(_PLACE, lambda _: next(given)[0], changed)


def without_given(text: str) -> str:
    """The text without what is in double brackets."""
    return GIVEN.sub(" ", text) if "[[" in text else text
