# ruff: noqa: RUF001 - letters of many scripts look like others
"""Codes of languages, and letters."""

import pytest
from tables import cases

from xtts.shared.config import TextConfig
from xtts.shared.errors import LockstepError
from xtts.shared.languages import chosen_language, find_language
from xtts.shared.text.scripts import is_letter

CASES = cases(__file__)


def test_codes_give_a_language_generic_rules_or_an_error():
    assert find_language("fa").name == "Persian"
    assert find_language("en").voice == "en-us"
    assert (find_language("xyz").scripts, find_language("xyz").voice) == ((), "xyz")
    assert find_language("gd").voice == "gd"  # rare, but assigned
    expected = "expected an ISO 639 code .* such as en, de, fa or cmn"
    for wrong in ("", "e", "EN", "en-US", "english", "e1", "ру", "xx", "uk_UA", "qq", "und", "mul"):
        with pytest.raises(LockstepError, match=f"text.language: '{wrong}', {expected}"):
            find_language(wrong)


def test_pages_lay_texts_out_by_language():
    assert [find_language(code).direction for code in ("fa", "ckb", "he", "dv")] == ["rtl"] * 4
    assert [find_language(code).direction for code in ("en", "ms", "xyz")] == ["auto"] * 3


def test_marks_and_joiners_are_letters_but_digits_are_not():
    assert all(map(is_letter, "aßж日한\u064e\u094d\u0e48\u200c\u200d·ʼ"))
    assert not any(map(is_letter, "1۱२ .,!€½'-\u00ad"))


@pytest.mark.parametrize(("alias", "code"), CASES["aliases"])
def test_three_letter_codes_mean_the_two_letter_languages(alias, code):
    assert find_language(alias).code == code
    assert TextConfig(language=alias).language == code


@pytest.mark.parametrize("code", ["th", "my", "lo", "km", "tha"])
def test_a_voice_that_loses_tones_or_vowels_is_not_offered(code):
    assert find_language(code).voice == ""


@pytest.mark.parametrize(("tag", "code"), CASES["tags"])
def test_a_tag_is_one_of_some_languages(tag, code):
    assert chosen_language(tag, ["en", "de", "cmn"]) == code
