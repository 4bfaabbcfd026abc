

"""Pauses and SSML in a text: none of their marks is read out, and no word is lost."""

import pytest
from tables import cases

from xtts.trainer.speech.marked_text import read_passages

CASES = cases(__file__)


def passages(text, *, phonemes=True):
    """(what is spoken, the pause after it) of each, and the warnings."""
    found, warnings = read_passages(text, "TEXT", phonemes=phonemes)
    return [[" ".join(passage.spoken.split()), passage.pause] for passage in found], warnings


@pytest.mark.parametrize(("text", "expected"), CASES["marks"])
def test_marks_become_pauses_and_what_is_spoken(text, expected):
    assert passages(text) == (expected, [])


@pytest.mark.parametrize(("text", "spoken", "named"), CASES["other tags"])
def test_other_tags_are_left_out_with_one_warning(text, spoken, named):
    warning = f"TEXT: skipped SSML tags that this voice does not know: {named}"
    assert passages(text) == ([[spoken, 0]], [warning])


def test_a_voice_without_phonemes_reads_the_word_itself():
    (found,), (warning,) = passages("<phoneme ph='f'>phone</phoneme>", phonemes=False)
    assert (found, warning[-9:]) == (["phone", 0], "<phoneme>")


@pytest.mark.parametrize(("text", "expected", "said"), CASES["unreadable"])
def test_a_mark_that_cannot_be_read_refuses_no_text(text, expected, said):
    spoken, warnings = passages(text)
    assert spoken == expected
    assert [line.startswith(f"TEXT: {said}") for line in warnings] == [True] * bool(said)


@pytest.mark.parametrize(("text", "spoken"), CASES["words"])
def test_what_only_looks_like_a_mark_is_words(text, spoken):
    ((words, _),), warnings = passages(text)
    assert (" ".join(words.split()), warnings) == (spoken, [])


def test_words_are_those_of_the_writer():
    (passage,), _ = read_passages(
        'A <sub alias="two words">2</sub>, \u4eca\u65e5\u3002\u518d\u89c1 [[ə b]].', "TEXT", phonemes=True
    )
    assert [(one.strip(), other.strip()) for one, other in passage.words] == [
        ("A", "A"), ("2,", "two words,"), ("\u4eca\u65e5\u3002",) * 2, ("\u518d\u89c1",) * 2, ("[[ə b]].",) * 2
    ]
