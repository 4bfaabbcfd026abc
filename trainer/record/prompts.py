"""Sentences to read aloud, in the order that covers the pairs of phonemes fastest: a function of their file."""

import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from xtts.shared.errors import LockstepError, read_text
from xtts.shared.languages import find_language
from xtts.shared.text.phonemes import can_phonemise, phonemise

_SHIPPED = Path(__file__).with_name("prompts")
_PHONEME = re.compile(r"\w[\u02b0-\u02c7\u02d0-\u02ff\u0300-\u036f]*")
"""A letter of IPA with its marks; stress, punctuation and spaces are none."""
_STRESS = re.compile("[\u02c8\u02cc]")
_MOST = 9_999
"""Takes have four digits."""


def read_prompts(file: Path | None, language: str) -> list[str]:
    """Read the prompts of a file, one a line, or ours for the language; return them in the order to record.

    Raises:
        LockstepError: There are none for this language, or a line cannot be one of `metadata.csv`.
    """
    path = file or _SHIPPED / f"{find_language(language).code}.txt"
    if file is None and not path.is_file():
        ours = ", ".join(sorted(shipped.stem for shipped in _SHIPPED.glob("*.txt")))
        fix = "--prompts FILE, with one sentence a line"
        raise LockstepError("--language", found=f"no prompts in {language!r}", expected=ours, fix=fix)
    prompts = dict[str, None]()
    for number, line in enumerate(read_text(path, "one prompt a line").splitlines(), start=1):
        if "|" in line:
            raise LockstepError(f"{path}:{number}", found="a |, which ends a column of metadata.csv", fix="remove it")
        prompts[" ".join(line.split())] = None
    prompts.pop("", None)
    if not 0 < len(prompts) <= _MOST:
        raise LockstepError(str(path), found=f"{len(prompts)} prompts", expected=f"1 to {_MOST:,}, one a line")
    return in_order(list(prompts), language)


def in_order(prompts: Sequence[str], language: str) -> list[str]:
    """Order prompts by the phoneme pairs that each adds; questions and single words come evenly among the others."""
    pairs, waiting = {prompt: phoneme_pairs(prompt, language) for prompt in prompts}, list(prompts)
    kinds = {prompt: _kind(prompt) for prompt in prompts}
    totals = {kind: list(kinds.values()).count(kind) for kind in range(3)}
    taken, covered, order = dict.fromkeys(range(3), 0), set[tuple[str, str]](), list[str]()
    while waiting:
        left = [kind for kind in totals if taken[kind] < totals[kind]]
        due = min(left, key=lambda kind: ((taken[kind] + 0.5) / totals[kind], kind))
        best = max(
            (prompt for prompt in waiting if kinds[prompt] == due), key=lambda prompt: len(pairs[prompt] - covered)
        )
        waiting.remove(best)
        covered |= pairs[best]
        taken[due] += 1
        order.append(best)
    return order


def _kind(prompt: str) -> int:
    """Return 2 for a single word, 1 for a question, else 0."""
    return 2 if " " not in prompt else 1 if prompt.endswith(("?", "؟", "？")) else 0  # noqa: RUF001


def phonemes(prompt: str, language: str) -> list[str]:
    """Return the phonemes of a prompt, each with its marks; its letters where espeak-ng is not installed."""
    spoken = phonemise(prompt, language) if can_phonemise(language) else prompt.lower()
    return _PHONEME.findall(_STRESS.sub("", spoken))


def phoneme_pairs(prompt: str, language: str) -> set[tuple[str, str]]:
    """Return the pairs of adjacent phonemes of a prompt, `#` before the first and after the last."""
    sounds = ["#", *phonemes(prompt, language), "#"]
    return {*pairwise(sounds)}
