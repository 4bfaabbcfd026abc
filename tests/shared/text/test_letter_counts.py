# ruff: noqa: RUF001 - letters of many scripts look like others
"""No letter is lost in silence: counts, shares and what the build says."""

import subprocess
import sys

import pytest

from xtts.shared.errors import LockstepError
from xtts.shared.text.letter_counts import LetterCounts, check_letters, count_letters
from xtts.shared.text.tokenizer import learn_tokenizer

ENGLISH = "the quick brown fox jumps over the lazy dog "


def counted(language: str, texts: list[str]) -> LetterCounts:
    tokenizer = learn_tokenizer("characters", {language: texts}, add_blank=False)
    counts = LetterCounts(language)
    for number, text in enumerate(texts):
        counts.add(f"clip{number}", text, tokenizer.encode(text).unknown)
    return counts


def refusal(language: str, texts: list[str]) -> str:
    with pytest.raises(LockstepError) as caught:
        check_letters(counted(language, texts), 0.001)
    assert caught.value.where == "text.language"
    return str(caught.value)


def test_characters_are_told_with_name_count_and_an_example():
    counts = counted("en", [ENGLISH * 9, "café 5 日", "日 é5€"])
    told = [(one.character, one.count, one.example, one.fate, one.is_letter) for one in counts.characters()]
    assert told == [
        ("5", 2, "clip1", "left out", False),
        ("日", 2, "clip1", "left out", True),
        ("€", 1, "clip2", "left out", False),
        ("é", 2, "clip1", "folded", True),
    ]
    assert counts.characters()[2].name == "EURO SIGN"
    assert counts.characters()[2].shown == "€ 1x in clip clip2"
    assert counts.share == pytest.approx(4 / counts.letters.total())


def test_another_language_under_english_is_refused_with_the_setting():
    assert "text.language=de" in refusal("en", ["Über die Straße gingen acht große Bären"])


def test_another_script_is_refused_though_its_letters_could_be_learned():
    message = refusal("ru", ["سلام، حال شما چطور است؟"])
    assert "Russian (ru), but most letters are Arabic" in message
    assert "--set text.language=fa" in message


def test_a_few_foreign_letters_pass_and_the_limit_that_is_proposed_is_enough():
    counts = counted("en", [ENGLISH * 100, "日"])
    check_letters(counts, counts.share)
    with pytest.raises(LockstepError) as caught:
        check_letters(counts, counts.share * 0.99)
    check_letters(counts, float(caught.value.fix.partition("max_unknown_share=")[2].split()[0]))


def test_digits_and_signs_are_told_and_are_no_letters():
    counts = counted("de", ["Das kostet 3,50 €, ja"] * 3)
    check_letters(counts, 0.0)
    assert {one.character: one.count for one in counts.characters() if one.fate == "left out"} == {
        "3": 3, "5": 3, "0": 3, "€": 3,
    }  # fmt: skip


def test_rare_letters_are_told_and_a_reading_has_none():
    counts = counted("de", ["aaa bbb ß", "aß ñ bbb"])
    assert [(one.character, one.fate) for one in counts.characters()] == [("ß", "rare"), ("ñ", "rare")]
    pytest.importorskip("pypinyin")
    assert counted("cmn", ["你好"]).characters() == []


def test_cyrillic_that_english_takes_apart_is_left_out_not_folded():
    assert dict(counted("en", [ENGLISH, "Й й"]).left_out) == {"й": 2}


def test_letters_that_espeak_would_spell():
    pytest.importorskip("espeakng_loader")
    code = (
        "from xtts.shared.text.tokenizer import learn_tokenizer\n"
        "from xtts.shared.text.letter_counts import LetterCounts, check_letters\n"
        "made, counts = learn_tokenizer('phonemes', {'de': ['ja']}, add_blank=False), LetterCounts('de')\n"
        "tokens = made.encode('Das ist 日本, ja')\n"
        "counts.add('one', 'Das ist 日本, ja', tokens.unknown)\n"
        "print(made.decode(tokens.ids), tokens.unknown)\n"
        "try: check_letters(counts, 0.001, kind='phonemes')\n"
        "except Exception as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    said, refused = done.stdout.splitlines()
    assert said == "das ɪst, jˈɑː 日本"
    assert "would be spelled by espeak-ng (Chinese characters: 日 1x in clip one" in refused
    assert "text.tokenizer=characters" in refused


def test_counts_over_parts_of_a_corpus_are_those_of_the_whole_in_any_order():
    clips = [("b", "Ünïcode a", "ï"), ("a", "ünd so x", "x"), ("c", "plain", ""), ("d", "ï", "ï")]
    texts = [(clip, text, "de", unknown) for clip, text, unknown in clips]
    (whole,), found = count_letters(texts, "de"), LetterCounts("de")
    for start in (2, 0):
        (part,) = count_letters(texts[start : start + 2], "de")
        found.merge(part)
    assert found == whole == count_letters(texts[::-1], "de")[0]
    assert found.examples["ï"] == "b"
