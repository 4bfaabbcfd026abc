# ruff: noqa: RUF001 - marks of many scripts look like others
"""Texts are cut at sentences, clauses, words, and at the marks of their own script."""

import pytest

from xtts.shared.languages import LANGUAGES
from xtts.trainer.synth.long_form import split_text as split_text_of


def split_text(text, *args, language="en"):
    return split_text_of(text, language, *args)


def within(letters):
    return lambda text: len(text) <= letters


def test_a_text_that_fits_stays_whole():
    assert split_text(" Mr. Fox came. He left. \n", within(40)) == ["Mr. Fox came. He left."]
    assert split_text(" \n", within(40)) == []


def test_long_text_is_cut_at_sentences_and_neighbours_stay_together():
    text = 'One came. "Two came!" Three came? Four came.'
    assert split_text(text, within(22)) == ['One came. "Two came!"', "Three came? Four came."]


def test_a_long_sentence_is_cut_at_clauses_then_words_then_anywhere():
    assert split_text("first this, then that; at last those", within(14)) == [
        "first this,",
        "then that;",
        "at last those",
    ]
    assert split_text("a bc def ghij", within(5)) == ["a bc", "def", "ghij"]
    assert split_text("abcdefgh", within(3)) == ["ab", "cd", "ef", "gh"]


def test_no_cut_is_made_between_double_brackets():
    text = "He left. [[a. b, c]] said [[dɛf]]."
    assert split_text(text, within(25)) == ["He left.", "[[a.]] [[b,]] [[c]] said", "[[dɛf]]."]
    assert split_text(text, within(20), lambda _: False) == ["He left.", "[[a.]] [[b,]] [[c]]", "said [[dɛf]]."]
    assert split_text("[[abc]]d", within(6)) == ["[[ab]]", "[[c]]d"], "but between phonemes, where it must be"
    assert split_text("[[abc]]", within(1)) == ["[[a]]", "[[b]]", "[[c]]"]


@pytest.mark.parametrize(
    ("language", "text", "pieces"),
    [
        ("en", "Dr. Smith came. He left.", ["Dr. Smith came.", "He left."]),
        ("en", "J. R. R. Tolkien wrote, e.g. letters. Often.", ["J. R. R. Tolkien wrote, e.g. letters.", "Often."]),
        (
            "de",
            "Wir kamen am 5. Mai. Er nicht, z. B. wegen Dr. Maier.",
            ["Wir kamen am 5. Mai.", "Er nicht, z. B. wegen Dr. Maier."],
        ),
        ("xyz", "Aa bb. Cc dd! Ee", ["Aa bb.", "Cc dd!", "Ee"]),
        ("fa", "سلام دنیا. خوبی؟ بله، خوبم!", ["سلام دنیا.", "خوبی؟", "بله، خوبم!"]),
        ("hi", "वह आया। मैं गया॥ ठीक है", ["वह आया।", "मैं गया॥", "ठीक है"]),
        ("cmn", "你好吗？我很好。“谢谢！”再见", ["你好吗？", "我很好。", "“谢谢！”", "再见"]),
        ("es", "¿Dónde? ¡Aquí! Sí", ["¿Dónde?", "¡Aquí!", "Sí"]),
        ("ar", "٣٫٥ نعم؛ لا", ["٣٫٥ نعم؛", "لا"]),
    ],
)
def test_sentences_end_where_the_language_has_them(language, text, pieces):
    found = split_text(text, lambda part: len(part) <= max(map(len, pieces)), lambda _: False, language=language)
    assert [piece.strip() for piece in found] == pieces


@pytest.mark.parametrize("language", [*LANGUAGES, "xyz"])
def test_no_language_loses_text(language):
    text = (
        'A\u3000. J. R.\u3000R. Tolkien\u00a0(e.g. 3.5!)\n\n"Yes。" 今天好，Да… a\u0301 \U0001f600 z.B. am 5. Mai ॥ '
        * 3
    )
    for letters in (2, 15, 60):
        pieces = split_text(text, within(letters), within(letters // 2), language=language)
        assert all(len(piece) <= letters for piece in pieces)
        assert "".join("".join(pieces).split()) == "".join(text.split())


def test_wide_commas_are_next_and_3_5_stays_whole():
    assert split_text("今天好，明天也好", lambda part: len(part) <= 5) == ["今天好，", "明天也好"]
    assert split_text("es kostet 3.5 Euro", lambda part: len(part) <= 14) == ["es kostet 3.5", "Euro"]


def test_sentences_of_a_long_text_are_joined_only_while_they_are_short():
    def split(text):
        return split_text(text, lambda part: len(part) <= 30, lambda part: len(part) <= 12)

    assert split("Yes. No. One came home late. Mr. Fox left. He was tired, and so was she.") == [
        "Yes. No.",
        "One came home late.",
        "Mr. Fox left.",
        "He was tired, and so was she.",
    ]
    assert split("One came home. He left. Bye.") == ["One came home. He left. Bye."]
    assert split("one came home, and left, and never came again to see us") == [
        "one came home, and left,",
        "and never came again to see us",
    ]
