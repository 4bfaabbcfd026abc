# ruff: noqa: RUF001 - letters of many scripts look like others
"""Codes, scripts, and what is a letter."""

import pytest

from xtts.shared.errors import LockstepError
from xtts.shared.text.languages import find_language
from xtts.shared.text.scripts import is_letter


def test_a_known_code_an_unknown_one_and_a_malformed_one():
    assert find_language("fa").name == "Persian"
    assert find_language("en").voice == "en-us"
    assert (find_language("xyz").scripts, find_language("xyz").voice) == ((), "xyz")
    for wrong in ("", "e", "EN", "en-US", "english", "e1", "ру"):
        with pytest.raises(LockstepError, match=r"text.language: .* such as en, de, fa or cmn"):
            find_language(wrong)


def test_letters_marks_and_joiners_spell_and_digits_do_not():
    assert all(map(is_letter, "aßж日한\u064e\u094d\u0e48\u200c\u200d·ʼ"))
    assert not any(map(is_letter, "1۱२ .,!€½'-\u00ad"))
