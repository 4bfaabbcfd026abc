# ruff: noqa: RUF001 - IPA letters look like others
"""Phonemes, in processes of their own: speech tests need espeak-ng not to be loaded in this one."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tables import cases

pytest.importorskip("espeakng_loader")

CASES = cases(__file__)
SENTENCES = json.loads((Path(__file__).parent / "golden_sentences.json").read_text(encoding="utf-8"))
CODE = """
import json, sys
from xtts.shared.errors import LockstepError
from xtts.shared.text.phonemes import phonemise, spelled_letters, unread_signs
def say(text, code):
    try: return [phonemise(text, code), spelled_letters(text, code) + "".join(unread_signs(text, code))]
    except LockstepError as error: return [str(error), ""]
print(json.dumps([say(*pair) for pair in json.load(sys.stdin)]))
"""


def say(*pairs):
    """[IPA or the error, letters that would be spelled and signs without a sound] of (text, language) pairs."""
    run = [sys.executable, "-c", CODE]
    done = subprocess.run(run, input=json.dumps(pairs), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def spoken(*pairs):
    return [ipa for ipa, _ in say(*pairs)]


@pytest.mark.parametrize("kind", [kind for kind in CASES if kind != "variants"])
def test_texts_have_these_phonemes(kind):
    """Tones and pauses of other languages are in the golden tokens."""
    assert spoken(*((text, code) for text, code, _ in CASES[kind])) == [ipa for *_, ipa in CASES[kind]]


def test_signs_that_readers_do_not_say_are_not_named():
    signs = ("home_page", "five/twelve", "x*y", "a # b", "go \U0001f600 \u2192 on")
    spaces = ("home page", "five twelve", "x y", "a b", "go on")
    for code in ("en", "de"):
        assert spoken(*((text, code) for text in signs)) == spoken(*((text, code) for text in spaces))
    assert spoken(("5 + 5%", "en")) == ["fˈaɪv plˈʌs fˈaɪv pɚsˈɛnt"]


@pytest.mark.parametrize(("written", "plain", "code"), CASES["variants"])
def test_variant_forms_of_characters_are_read_as_the_plain_ones(written, plain, code):
    variant, expected = spoken((written, code), (plain, code))
    assert variant == expected


def test_emoticons_and_arrows_are_silent_and_dashes_pause():
    for code in ("en", "de", "fa"):
        assert spoken(("!!!", code), (":)", code), ("Hi :-) you", code)) == ["", "", *spoken(("Hi you", code))]
        assert spoken(("a => b -> c", code), ("+++ a +++", code)) == spoken(("a b c", code), ("a", code))
        assert spoken(("Hi!You", code), ("Hi?!You", code)) == spoken(("Hi! You", code), ("Hi? You", code))
        assert spoken((":you", code), ("!!! you !", code)) == spoken(("you", code), ("you!", code))
        assert spoken(("wait \u2026 go", code)) == spoken(("wait ... go", code))
    assert spoken(("Bonjour ! Ici : moi", "fr"), ("stop.Go", "en")) == spoken(
        ("Bonjour! Ici: moi", "fr"), ("stop. Go", "en")
    )
    assert spoken(("wait \u2013 go", "de"), ("wait \u2013 go", "en")) == spoken(
        ("wait, go", "de"), ("wait \u2014 go", "en")
    )


def test_signs_that_the_voice_skips_are_reported():
    pairs = {("₹ ५ ¥", "hi"): "₹¥", ("5 ₹ $", "ru"): "₹", ("5 € 50 % ₽", "de"): "₽", ("3 × 4 = 12 ‰", "en"): "‰"}
    assert [signs for _, signs in say(*pairs)] == list(pairs.values())


def test_phonemes_do_not_depend_on_earlier_texts():
    """Workers speak the clips of a corpus in any order."""
    pairs = [(text, code) for code, own in SENTENCES.items() for text in [*own, "IBM naïve 3.50 € 日本 Жук", "१२ ५"]]
    pairs += [(text, "en") for text in ("Été \U0001f600 naïve?", "a" * 3000, "x, " * 500)]
    mixed = pairs[::7] + [pair for i, pair in enumerate(pairs) if i % 7]
    alone = dict(zip(mixed, spoken(*mixed), strict=True))
    assert alone == dict(zip(pairs, spoken(*pairs), strict=True))
    assert spoken(pairs[-3]) == [alone[pairs[-3]]]


def test_letters_without_a_reading_are_reported_and_left_out():
    (german, spelled), (same, none), (english, foreign), arabic, greek = say(
        ("ja 日 ж", "de"), ("ja", "de"), ("so 日", "en"), ("سلام λόγος", "en"), ("π", "en")
    )
    assert (german, spelled) == (same, "ж日")
    assert none == ""
    assert (english, foreign) == ("sˈoʊ", "日")
    assert arabic[0] == ""
    assert greek == ["pˈaɪ", ""], "a symbol"


def test_a_language_without_a_full_voice_is_refused():
    japanese, none = spoken(("あ", "ja"), ("a", "qqq"))
    assert "phonemes in Japanese, for which espeak-ng has no voice" in japanese
    assert "--set text.tokenizer=characters" in japanese
    assert "espeak-ng has no voice qqq" in none
    given, missing = spoken(("[[silaw]]، [[toni]]؟", "ckb"), ("[[a]] b", "ckb"))
    assert given == "silaw, toni?"
    assert "or give [[phonemes]] for every word" in missing


def test_threads_get_the_phonemes_of_their_own_texts():
    code = f"from concurrent.futures import ThreadPoolExecutor\n{CODE}".replace(
        "[say(*pair) for pair in json.load(sys.stdin)]",
        "list(ThreadPoolExecutor(4).map(lambda pair: say(*pair), json.load(sys.stdin)))",
    )
    pairs = [("Hello, world. " * 20, "en"), ("Guten Tag, wie geht es Ihnen? " * 20, "de")] * 8
    done = subprocess.run([sys.executable, "-c", code], input=json.dumps(pairs), capture_output=True, text=True)
    assert json.loads(done.stdout) == say(*pairs)
