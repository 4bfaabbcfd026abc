# ruff: noqa: RUF001 - marks of many scripts look like others
"""Texts are cut at sentences, clauses, words, and at the marks of their own script."""

import pytest

from xtts.shared.languages import LANGUAGES
from xtts.trainer.speech.sentences import split_sentences, split_text


def within(letters):
    return lambda text: len(text) <= letters


@pytest.mark.parametrize(("text", "letters", "pieces"), [
    (" Mr. Fox came; he left. \n", 40, ["Mr. Fox came; he left."]),
    (" \n", 40, []),
    ("first this, then that; at last those", 14, ["first this,", "then that;", "at last those"]),
    ("a bc def ghij", 5, ["a bc", "def", "ghij"]),
    ("abcdefgh", 3, ["ab", "cd", "ef", "gh"]),
    ("٣٫٥ نعم؛ لا", 8, ["٣٫٥ نعم؛", "لا"]),
    ("今天好，明天也好", 5, ["今天好，", "明天也好"]),
    ("es kostet 3.5 Euro", 14, ["es kostet 3.5", "Euro"]),
    ("[[a. b, c]] said [[dɛf]].", 20, ["[[a.]] [[b,]] [[c]]", "said [[dɛf]]."]),
    ("[[abc]]d", 6, ["[[ab]]", "[[c]]d"]),  # between phonemes, where it must be
    ("[[abc]]", 1, ["[[a]]", "[[b]]", "[[c]]"]),
])
def test_what_does_not_fit_is_cut_at_clauses_words_or_anywhere(text, letters, pieces):
    assert split_text(text, within(letters)) == pieces


@pytest.mark.parametrize(("text", "sentences"), [
    ("One came. Two came!\nThree came", ["One came.", "Two came!", "Three came"]),
    ("milk\neggs\n\nbread and\nbutter", ["milk", "eggs", "bread and", "butter"]),
    ("- milk\n* two eggs\n\u2022 bread", ["milk", "two eggs", "bread"]),
    (f"{'a' * 60}\nwrapped here.\nAnother", [f"{'a' * 60} wrapped here.", "Another"]),
    ("He said [[a. b]] twice. Yes.", ["He said [[a.]] [[b]] twice.", "Yes."]),
    (" \n", []),
])
def test_sentences_lines_and_items_are_parted(text, sentences):
    assert split_sentences(text, "en") == sentences


@pytest.mark.parametrize(("language", "text", "pieces"), [
    ("en", "Dr. Smith came. He left.", ["Dr. Smith came.", "He left."]),
    ("en", "J. R. R. Tolkien wrote, e.g. letters. Often.", ["J. R. R. Tolkien wrote, e.g. letters.", "Often."]),
    (
        "de",
        "Wir kamen am 5. Mai. Er nicht, z. B. wegen Dr. Maier.",
        ["Wir kamen am 5. Mai.", "Er nicht, z. B. wegen Dr. Maier."],
    ),
    ("en", "Rep. Lee met Zzk. 5 in Apt. 4 of Elm St. today.", ["Rep. Lee met Zzk. 5 in Apt. 4 of Elm St. today."]),
    ("en", "I saw cats. 5 of them. See Main St. The end.", ["I saw cats.", "5 of them.", "See Main St.", "The end."]),
    ("de", "Vgl. Abb. 3. Fzg. mit Hr. Dr. med. Lau tgl.", ["Vgl. Abb. 3.", "Fzg. mit Hr. Dr. med. Lau tgl."]),
    ("xyz", "Aa bb. Cc dd! Ee", ["Aa bb.", "Cc dd!", "Ee"]),
    ("fa", "سلام دنیا. خوبی؟ بله، خوبم!", ["سلام دنیا.", "خوبی؟", "بله، خوبم!"]),
    ("hi", "वह आया। मैं गया॥ ठीक है", ["वह आया।", "मैं गया॥", "ठीक है"]),
    ("cmn", "你好吗？我很好。“谢谢！”再见", ["你好吗？", "我很好。", "“谢谢！”", "再见"]),
    ("es", "¿Dónde? ¡Aquí! Sí", ["¿Dónde?", "¡Aquí!", "Sí"]),
    ("hi", "कीमत ३.५ लाख है। ठीक है।", ["कीमत ३.५ लाख है।", "ठीक है।"]),
    ("fa", "نسخهٔ ۲.۰.۱ آمد. خوب است.", ["نسخهٔ ۲.۰.۱ آمد.", "خوب است."]),
])
def test_sentences_end_where_the_language_has_them(language, text, pieces):
    assert split_sentences(text, language) == pieces


@pytest.mark.parametrize("language", [*LANGUAGES, "xyz"])
def test_no_language_loses_text(language):
    text = (
        'A\u3000. J. R.\u3000R. Tolkien\u00a0(e.g. 3.5!)\n\n"Yes。" 今天好，Да… a\u0301 \U0001f600 z.B. am 5. Mai ॥ '
        * 3
    )
    for letters in (2, 15, 60):
        pieces = [
            piece for sentence in split_sentences(text, language) for piece in split_text(sentence, within(letters))
        ]
        assert all(len(piece) <= letters for piece in pieces)
        assert "".join("".join(pieces).split()) == "".join(text.split())
