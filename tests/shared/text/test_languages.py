# ruff: noqa: RUF001 - letters of many scripts look like others
"""Codes, scripts and the language that letters speak for."""

import json
from collections import Counter
from pathlib import Path

import pytest

from xtts.shared.errors import LockstepError
from xtts.shared.text.languages import LANGUAGES, find_language
from xtts.shared.text.scripts import is_letter, script_of, suggest_language


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


SENTENCES = json.loads((Path(__file__).parent / "golden_sentences.json").read_text(encoding="utf-8"))
NEIGHBOURS = {
    "ur": "آپ کیسے ہیں؟ میں ٹھیک ہوں بڑا", "uk": "їжте ще цих французьких булочок, є ґанок", "ko": "안녕",
    "bg": "здравей, как си ти? хубав ден, път", "mr": "मला मराठी कळत नाही, बाळ", "pl": "zażółć gęślą jaźń",
    "fi": "hyvää päivää, yötä", "ja": "東京は日本の首都", "en": "hello",
}  # fmt: skip
"""Languages that share a script with those of the golden sentences."""


@pytest.mark.parametrize("code", [*SENTENCES, *NEIGHBOURS])
def test_letters_speak_for_a_language(code):
    text = NEIGHBOURS.get(code) or "".join(SENTENCES[code])
    language = suggest_language(Counter(c for c in text.lower() if is_letter(c)))
    assert language is not None
    assert language.code == code
