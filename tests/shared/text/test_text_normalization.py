"""English numbers: how they are put into a text; which words they become is in test_numbers_in_context."""

import pytest

from xtts.shared.text.text_normalization import expand


@pytest.mark.parametrize(("written", "spoken"), [
    (
        "Dr. Smith has 12 boats in 1984, $5.50",
        "Doctor Smith has twelve boats in nineteen eighty-four, five dollars and fifty cents",
    ),
    ("$1, $0.50, £2.01 and $1.5; No. 5? No. Mr.Jones", "one dollar, fifty cents, two pounds and one penny and "
     "one point five dollars; Number five? No. Mister Jones"),
    ("1" * 20, " ".join(["one"] * 20)),
    ("$" + "9" * 5000, " ".join(["nine"] * 5000) + " dollars"),
])  # fmt: skip
def test_numbers_and_abbreviations_become_words(written, spoken):
    assert expand(written) == spoken
    assert expand(spoken) == spoken


@pytest.mark.parametrize("text", ["Nothing to do.", "", "\uff21 caf\u00e9 \u2014 the mr and mrs", "$ % st."])
def test_texts_without_numbers_are_unchanged(text):
    assert expand(text) == text


def test_phonemes_in_double_brackets_are_left_alone():
    assert expand("[[5 Dr.]] has 5 [[½ & 3/4]] km") == "[[5 Dr.]] has five [[½ & 3/4]] km"
    assert expand("[[5]] and [5] and [[5") == "[[5]] and [five] and [[five"
    assert expand("a \ufdd0 [[5]] 5") == "a   [[5]] five"  # the character that stands for them inside
