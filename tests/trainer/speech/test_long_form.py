# ruff: noqa: RUF001 - marks of many scripts look like others

"""Texts are cut at sentences, clauses, words, and at the marks of their own script."""

import pytest
from tables import cases, tsv

from xtts.shared.languages import LANGUAGES
from xtts.trainer.speech.sentences import split_sentences, split_text

CASES = cases(__file__)


def within(letters):
    return lambda text: len(text) <= letters


@pytest.mark.parametrize(("text", "letters", "pieces"), CASES["cut"])
def test_what_does_not_fit_is_cut_at_clauses_words_or_anywhere(text, letters, pieces):
    assert split_text(text, within(letters)) == pieces


@pytest.mark.parametrize(("text", "sentences"), CASES["parted"])
def test_sentences_lines_and_items_are_parted(text, sentences):
    assert split_sentences(text, "en") == sentences


def test_sentences_end_where_the_language_has_them():
    for language, text, sentences in tsv(__file__, "sentences"):
        assert split_sentences(text, language) == sentences.split("|")


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
