# ruff: noqa: RUF001 - IPA letters look like others
"""Phonemes of languages other than English, in a process of their own, as in `test_phonemes.py`."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("espeakng_loader")

SENTENCES = json.loads((Path(__file__).parent / "golden_sentences.json").read_text(encoding="utf-8"))
CODE = """
import json, sys
from xtts.shared.errors import LockstepError
from xtts.shared.text.phonemes import phonemise, spelled_letters
def say(text, code):
    try: return [phonemise(text, code), spelled_letters(text, code)]
    except LockstepError as error: return [str(error), ""]
print(json.dumps([say(*pair) for pair in json.load(sys.stdin)]))
"""


def say(*pairs):
    """[IPA or the error, letters that would be spelled] of (text, language) one after the other."""
    run = [sys.executable, "-c", CODE]
    done = subprocess.run(run, input=json.dumps(pairs), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def spoken(*pairs):
    return [ipa for ipa, _ in say(*pairs)]


def test_the_voice_changes_with_the_language_and_back():
    pairs = [
        ("Hello, Jan!", "en"),
        ("Hallo, Jan!", "de"),
        ("Hello, Jan!", "en"),
        ("Привет", "ru"),
        ("Hallo, Jan!", "de"),
    ]
    found = spoken(*pairs)
    assert found[0] == found[2] == "həlˈoʊ, dʒˈæn!"
    assert found[1] == found[4] == "hˈaloː, jˈɑːn!"
    assert found[3] == "prʲivʲˈet"


def test_order_and_company_do_not_matter():
    """Workers speak the clips of a corpus in any order."""
    pairs = [(text, code) for code, some in SENTENCES.items() for text in [*some, "IBM naïve 3.50 € 日本 Жук", "१२ ५"]]
    mixed = pairs[::7] + [pair for i, pair in enumerate(pairs) if i % 7]
    assert dict(zip(mixed, spoken(*mixed), strict=True)) == dict(zip(pairs, spoken(*pairs), strict=True))


def test_mandarin_keeps_its_four_tones_and_the_neutral_one():
    """In IPA espeak-ng writes tones 1 and 4 alike, and tone 2 as a vowel."""
    assert spoken(("妈", "cmn"), ("麻", "cmn"), ("马", "cmn"), ("骂", "cmn"), ("吗", "cmn")) == [
        "mˈɑ¹", "mˈɑ²", "mˈɑ³", "mˈɑ⁴", "mˈɑ⁵",
    ]  # fmt: skip
    assert spoken(("出租车，吃饭。", "cmn")) == ["tʂhˈu¹ tsˈu¹ tʂhˈɤ¹, tʂhˈɨ¹ fˈa⁴n."]


def test_vietnamese_keeps_its_six_tones():
    assert spoken(("má mà mả mã mạ ma", "vi")) == ["mˈaː³ mˌaː² mˈaː⁴ mˈaː⁵ mˈaː⁶ mˈaː"]


def test_marks_of_a_language_switch_and_of_notation_are_gone():
    assert spoken(("hello мир", "ru"), ("je ne sais", "fr"), ("hello 你好", "cmn")) == [
        "həlˈəʊ mʲˈir", "ʒə nə sˈɛ", "həlˈəʊ ni³χˈɑu³",
    ]  # fmt: skip


def test_pauses_of_other_scripts():
    assert spoken(("بله، نه؟", "fa"), ("है। नहीं!", "hi"), ("好。好！", "cmn"), ("¿Sí?", "es")) == [
        "bˈaleː, nˈa?", "hɛː. nˈʌhi\u0303!", "χˈɑu³. χˈɑu³!", "sˈi?",
    ]  # fmt: skip


def test_letters_without_a_reading_are_named_and_left_out():
    (german, spelled), (same, none), (english, foreign) = say(("ja 日 ж", "de"), ("ja", "de"), ("so 日", "en"))
    assert (german, spelled) == (same, "ж日")
    assert none == ""
    assert foreign == "日"
    assert english.startswith("sˌoʊ tʃ")  # as English caches have it


def test_no_letter_of_the_goldens_would_be_spelled():
    assert {code: told for code, some in SENTENCES.items() for _, told in say(*((t, code) for t in some)) if told} == {}


def test_a_language_that_is_spelled_and_one_without_a_voice_are_refused():
    japanese, none = spoken(("あ", "ja"), ("a", "qqq"))
    assert "phonemes in Japanese, which espeak-ng spells letter by letter" in japanese
    assert "--set text.tokenizer=characters" in japanese
    assert "espeak-ng has no voice qqq" in none
