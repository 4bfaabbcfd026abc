"""Documents become lines: Markdown loses its marks, wrapped paragraphs are joined, and other lines stay apart."""

import textwrap

import pytest
from tables import cases

from xtts.trainer.speech.documents import join_lines, read_document
from xtts.trainer.speech.sentences import split_sentences

CASES = cases(__file__)

@pytest.mark.parametrize(("text", "language"), CASES["paragraphs"])
def test_a_wrapped_paragraph_has_its_sentences_at_every_width(text, language):
    for width in range(40, 101):
        wrapped = textwrap.fill(text, width)
        item = textwrap.fill(text, width, initial_indent="- ", subsequent_indent="  ")
        assert len(split_sentences(f"{wrapped}\n\n{wrapped}\n{item}", language)) == 9, width


@pytest.mark.parametrize(("text", "joined"), CASES["joined"])
def test_only_lines_that_were_one_are_joined(text, joined):
    assert join_lines(text) == joined


def test_markdown_is_read_without_its_marks():
    lines = [line for line in read_document(CASES["markdown"]).splitlines() if line]
    assert lines == ["Head", "See the guide, a cat and bold code.", "one", "x = 1", "a, b,", "1, 2,"]


@pytest.mark.parametrize(("text", "read"), CASES["read"])
def test_what_only_looks_like_a_mark_is_read_and_signs_of_other_texts_stay(text, read):
    assert read_document(text).rstrip() == read.rstrip()
