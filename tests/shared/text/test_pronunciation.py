# ruff: noqa: RUF001 - IPA letters look like others

"""Lexicons: which words they replace, and malformed files."""

import pytest
from tables import cases

from xtts.shared.errors import LockstepError
from xtts.shared.text.pronunciation import apply_lexicon, read_lexicon, written_entries
from xtts.shared.text.text_normalization import expand

CASES = cases(__file__)

WORDS = "\ufeffnguyen\t[[wɪn]]\r\n\nUS\tyou ess\nco-op\tkoh opp\nO’Brien\toh bryan\nहिन्दी\thindee\n"


@pytest.fixture
def lexicon(tmp_path):
    """`lexicon(text, tokenizer)`: what a file of this text holds."""

    def read(text, tokenizer="characters"):
        (tmp_path / "lexicon.tsv").write_text(text, encoding="utf-8")
        return read_lexicon(tmp_path / "lexicon.tsv", tokenizer)

    return read


@pytest.mark.parametrize(("written", "read"), CASES["words"])
def test_whole_words_are_replaced_lower_case_ones_in_any_case(lexicon, written, read):
    assert apply_lexicon(written, lexicon(WORDS, "phonemes")) == read


def test_words_with_digits_or_points_are_found_as_they_are_written(lexicon):
    words = lexicon("mp3\tem pee three\nGPT-4o\tgee pee tee four oh\nق.م.\tپیش از میلاد\nr.k\tarkay\na\tb\n")
    assert (
        expand("An mp3, GPT-4o. R.K.", lexicon=written_entries(words)) == "An em pee three, gee pee tee four oh. arkay."
    )
    assert expand("در ۵۳۰ ق.م. مرد.", "fa", written_entries(words)) == "در پانصد و سی پیش از میلاد مرد."
    assert apply_lexicon("a mp3.", words) == "b em pee three."


@pytest.mark.parametrize(("line", "message"), CASES["malformed"])
def test_a_malformed_line_is_refused_with_its_location(lexicon, line, message):
    with pytest.raises(LockstepError, match=rf"lexicon.tsv:3: .*{message}"):
        lexicon(f"ok\tokay\n\n{line}\n")


def test_an_unreadable_lexicon_is_refused(tmp_path):
    (tmp_path / "latin").write_bytes(b"a\t\xff")
    for name, error in (("none", "No such file"), ("latin", "not UTF-8 text")):
        with pytest.raises(LockstepError, match=f"{name}: .*{error}.*expected lines of a word, a tab and its reading"):
            read_lexicon(tmp_path / name, "bpe")
