# ruff: noqa: RUF001 - letters of many scripts look like others
"""Codes, scripts and the language that letters speak for."""

from collections import Counter

import pytest

from xtts.shared.errors import LockstepError
from xtts.shared.text.languages import LANGUAGES, find_language
from xtts.shared.text.scripts import is_letter, main_script, script_of, suggest_language


def test_a_known_code_an_unknown_one_and_a_malformed_one():
    assert find_language("fa").name == "Persian"
    assert find_language("en").voice == "en-us"
    assert (find_language("xyz").scripts, find_language("xyz").voice) == ((), "xyz")
    for wrong in ("", "e", "EN", "en-US", "english", "e1", "ру"):
        with pytest.raises(LockstepError, match=r"text.language: .* such as en, de, fa or cmn"):
            find_language(wrong)


def test_the_table_is_whole():
    assert len(LANGUAGES) >= 60
    for language in LANGUAGES.values():
        assert language.name
        assert language.scripts
        assert all(script_of(c) in language.scripts for c in language.letters - {"·"})
        assert all(is_letter(c) and c == c.lower() for c in language.letters)


def test_letters_marks_and_joiners_spell_and_digits_do_not():
    assert all(map(is_letter, "aßж日한\u064e\u094d\u0e48\u200c\u200d·ʼ"))
    assert not any(map(is_letter, "1۱२ .,!€½'-\u00ad"))


def test_scripts():
    assert [script_of(c) for c in "aжش日あカ한\u064e\uff41"] == [
        "LATIN", "CYRILLIC", "ARABIC", "CJK", "HIRAGANA", "KATAKANA", "HANGUL", "ARABIC", "LATIN",
    ]  # fmt: skip
    assert (script_of("\u0301"), main_script({})) == ("", "")


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("de", "über die straße gingen acht große bären"),
        ("fa", "سلام، حال شما چطور است؟ می‌روم"),
        ("ar", "مرحبا كيف حالك؟ إلى المدرسة"),
        ("ur", "آپ کیسے ہیں؟ میں ٹھیک ہوں بڑا"),
        ("ru", "съешь ещё этих мягких французских булок"),
        ("uk", "їжте ще цих французьких булочок, є ґанок"),
        ("bg", "здравей, как си ти? хубав ден, път"),
        ("hi", "नमस्ते, आप कैसे हैं?"),
        ("mr", "मला मराठी कळत नाही, बाळ"),
        ("es", "¿dónde está el niño? ¡aquí!"),
        ("fr", "le cœur a ses raisons que la raison ne connaît point, été, où"),
        ("tr", "ışık ılık süt içiyor, çağrı gönderdi"),
        ("vi", "xin chào, tôi tên là nguyễn, được"),
        ("pl", "zażółć gęślą jaźń"),
        ("fi", "hyvää päivää, yötä"),
        ("cmn", "你好"),
        ("ja", "東京は日本の首都"),
        ("ko", "안녕"),
        ("en", "hello"),
    ],
)
def test_letters_speak_for_a_language(code, text):
    _, language = suggest_language(Counter(c for c in text if is_letter(c)))
    assert language is not None
    assert language.code == code


def test_a_script_of_no_known_language():
    assert suggest_language({"ᚠ": 3}) == ("RUNIC", None)
