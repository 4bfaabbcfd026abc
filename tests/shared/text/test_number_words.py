"""Numbers of other languages: in their own words, or left alone."""

import pytest

from xtts.shared.languages import LANGUAGES
from xtts.shared.text.number_words import name_digits
from xtts.shared.text.text_normalization import expand
from xtts.shared.text.tokenizer import learn_tokenizer


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
