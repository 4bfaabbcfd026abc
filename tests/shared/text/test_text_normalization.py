"""Numbers of a text in words, in the contexts that normalisers' tests have: as speakers of English and German say."""

import re

import pytest
from tables import tsv

from xtts.shared.languages import LANGUAGES
from xtts.shared.text.alphabet import spell
from xtts.shared.text.number_words import name_digits
from xtts.shared.text.text_normalization import expand
from xtts.shared.text.tokenizer import learn_tokenizer


@pytest.mark.parametrize(("written", "spoken"), [
    ("1" * 20, " ".join(["one"] * 20)), ("$" + "9" * 5000, " ".join(["nine"] * 5000) + " dollar"),
])
def test_numbers_and_abbreviations_become_words(written, spoken):
    assert expand(written) == spoken
    assert expand(spoken) == spoken


def test_phonemes_in_double_brackets_are_left_alone():
    assert expand("[[5 Dr.]] has 5 [[½ & 3/4]] km") == "[[5 Dr.]] has five [[½ & 3/4]] km"
    assert expand("[[5]] and [5] and [[5") == "[[5]] and [five] and [[five"
    assert expand("a \ufdd0 [[5]] 5") == "a   [[5]] five"  # the character that stands for them inside


def words(text):
    return re.findall(r"[^\W_]+(?:'[^\W_]+)?", text.lower())


@pytest.mark.parametrize("code", ["en", "de"])
def test_numbers_in_context_are_read_as_in_the_table(code):
    rows = tsv(__file__, f"numbers_in_context_{code}")
    assert len(rows) >= 120
    wrong = [(written, spoken, expand(written, code)) for written, spoken in rows]
    wrong = [row for row in wrong if words(row[2]) != words(row[1])]
    assert not wrong, "\n".join(map(" | ".join, wrong))


@pytest.mark.parametrize("code", ["en", "de", "fr", "ru", "cs", "tr", "ko"])
@pytest.mark.parametrize(
    "written", ["31/31/2020", "10:75", "1.2.3.4.5", "7-8-9-10", "a5b6", "12/2024/7", "1:2:3", "-0", "½x"]
)
def test_no_digit_is_dropped(code, written):
    spoken = expand(written, code) if code in ("en", "de") else spell(expand(written, code), code)
    assert not any(map(str.isnumeric, spoken))
    assert code == "ko" or len(words(spoken)) >= len(re.findall("[0-9]+", written))  # Korean numbers touch letters


def test_a_full_stop_of_an_abbreviation_still_ends_its_sentence():
    assert expand("He came at 5 p.m. Then he left.") == "He came at five p m. Then he left."
    assert expand("Add 5 ft. Then 10 ft. more.") == "Add five feet. Then ten feet more."
    assert expand("Pears, etc. He left, etc.") == "Pears, et cetera. He left, et cetera."
    assert expand("Er hat 3. Dann ging er am 5. weg.", "de") == "Er hat drei. Dann ging er am fünften weg."
    assert expand("Äpfel usw. Dann", "de") == "Äpfel und so weiter. Dann"


@pytest.mark.parametrize("language", ["cmn", "am", "sr", "xyz", "th"])
def test_no_english_word_gets_into_another_language(language):
    said = expand("12345 Dr. St. $5 & 3rd 12:30", language)
    assert not any(word in said for word in ("Doctor", "five", "dollar", "and", "third", "Street"))
    if language != "th":
        assert said == "12345 Dr. St. $5 & 3rd 12:30"


@pytest.mark.parametrize(("language", "written", "spoken"), [
    ("mr", "१२ और 3x", "एक दोन और तीन x"), ("bg", "05.3", "нула пет.три"), ("cmn", "ni3 hao3 10", "ni³ hao³ yi¹ ling²"),
    ("uz", "8!", "sakkiz!"),
])
def test_digits_are_read_one_by_one_without_other_words(language, written, spoken):
    if language == "cmn":
        pytest.importorskip("pypinyin")
    tokenizer = learn_tokenizer("characters", {language: [written]}, add_blank=False)
    tokens = tokenizer.encode(expand(written, language))
    assert (tokenizer.decode(tokens.ids), tokens.left_out) == (spoken, {})


def test_every_language_has_words_for_digits():
    missing = {code for code in LANGUAGES if expand("7", code) == "7" == name_digits("7", code)}
    assert missing == {"ja"}, "which has a reader of its own"
