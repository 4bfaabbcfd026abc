"""No letter is lost in silence: counts, shares and what the build says."""

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
    assert counts.lost_share == pytest.approx(4 / counts.letters.total())
    rare = counted("de", ["aaa bbb ß", "aß ñ bbb"]).characters()
    assert [(one.character, one.fate) for one in rare] == [("ß", "rare"), ("ñ", "rare")]
    assert dict(counted("en", [ENGLISH, "Й й"]).left_out) == {"й": 2}, "not taken apart and folded"


def test_phonemes_in_double_brackets_are_no_letters_of_the_corpus():
    counts = LetterCounts("de")
    counts.add("one", "ja [[ʙʙa]]", "ʙ")
    assert (dict(counts.letters), dict(counts.left_out)) == ({"j": 1, "a": 1}, {"ʙ": 2})


@pytest.mark.parametrize(
    ("language", "text", "said"),
    [
        ("en", "Über die Straße gingen acht große Bären", "text.language=CODE"),
        ("ru", "سلام، حال شما چطور است؟", r"Russian \(ru\), but most letters are Arabic.*--set text.language=CODE"),
    ],
)
def test_another_language_or_script_is_refused_with_the_setting_though_letters_could_be_learned(language, text, said):
    with pytest.raises(LockstepError, match=said) as caught:
        check_letters(counted(language, [text]), 0.001)
    assert caught.value.where == "text.language"


def test_a_corpus_of_phonemes_is_told_how_they_are_written():
    fix = r"expected at most 0\.10% with .*; write phonemes as .* and build with --set text.tokenizer=ph"
    with pytest.raises(LockstepError, match=fix):
        check_letters(counted("en", ["h\u0259l\u02c8o\u028a w\u02c8\u025c\u02d0ld"]), 0.001)


def test_a_few_foreign_letters_pass_and_the_limit_that_is_proposed_is_enough():
    counts = counted("en", [ENGLISH * 100, "日"])
    check_letters(counts, counts.lost_share)
    with pytest.raises(LockstepError) as caught:
        check_letters(counts, counts.lost_share * 0.99)
    check_letters(counts, float(caught.value.fix.partition("max_unknown_share=")[2].split()[0]))


def test_letters_that_espeak_would_spell():
    counts = LetterCounts("de")
    counts.add("one", "Das ist 日本, ja", "日本")
    with pytest.raises(LockstepError, match=r"spelled by espeak-ng \(Chinese characters: 日 1x in clip one") as caught:
        check_letters(counts, 0.001, kind="phonemes")
    assert "text.tokenizer=characters" in caught.value.fix


def test_counts_over_parts_of_a_corpus_are_those_of_the_whole_in_any_order():
    clips = [("b", "Ünïcode a", "ï"), ("a", "ünd so x", "x"), ("c", "plain", ""), ("d", "ï", "ï")]
    texts = [(clip, text, "de", unknown) for clip, text, unknown in clips]
    (whole,), found = count_letters(texts, "de"), LetterCounts("de")
    for start in (2, 0):
        (part,) = count_letters(texts[start : start + 2], "de")
        found.merge(part)
    assert found == whole == count_letters(texts[::-1], "de")[0]
    assert found.examples["ï"] == "b"
