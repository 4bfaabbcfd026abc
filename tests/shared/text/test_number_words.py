"""Numbers of other languages: in their own words, or left alone."""

import pytest

from xtts.shared.languages import LANGUAGES
from xtts.shared.text.number_contexts import digit_names
from xtts.shared.text.text_normalization import expand
from xtts.shared.text.tokenizer import learn_tokenizer


@pytest.mark.parametrize(("language", "written", "spoken"), [
    ("de", "Am 3. Mai um 10:30, 1.2", "Am dritten Mai um zehn Uhr dreißig, eins Punkt zwei"),
    ("fr", "3,5 et 5 $", "trois virgule cinq et cinq dollars"),
    ("ru", "5 ₽, 3,5 и 25%", "пять рублей, три,пять и двадцать пять%"),
    ("ar", "5 €", "خمسة €"),
    ("tr", "%25 ve 3'te", "yüzde yirmibeş ve üç'te"),
    ("pl", "-5 i 3", "-pięć i trzy"),
    ("de", "7" * 20, " ".join(["sieben"] * 20)),
])  # fmt: skip
def test_numbers_are_read_in_the_words_of_the_language(language, written, spoken):
    assert expand(written, language) == spoken


@pytest.mark.parametrize("language", ["hi", "cmn", "am", "sr", "xyz", "th"])
def test_no_english_word_gets_into_another_language(language):
    said = expand("12345 Dr. St. $5 & 3rd 12:30", language)
    assert not any(word in said for word in ("Doctor", "five", "dollar", "and", "third", "Street"))
    if language != "th":
        assert said == "12345 Dr. St. $5 & 3rd 12:30"


@pytest.mark.parametrize(("language", "written", "spoken"), [
    ("hi", "१२ और 3x", "एक दो और तीन x"),
    ("bg", "05.3", "нула пет.три"),
    ("cmn", "ni3 hao3 10", "ni³ hao³ yi¹ ling²"),
    ("uz", "8!", "sakkiz!"),
])  # fmt: skip
def test_digits_are_read_one_by_one_without_other_words(language, written, spoken):
    if language == "cmn":
        pytest.importorskip("pypinyin")
    tokenizer = learn_tokenizer("characters", {language: [written]}, add_blank=False)
    tokens = tokenizer.encode(expand(written, language))
    assert (tokenizer.decode(tokens.ids), tokens.unknown) == (spoken, "")


def test_every_language_has_words_for_digits():
    missing = {code for code in LANGUAGES if expand("7", code) == "7" and len(digit_names(code)) != 10}
    assert missing == {"ja"}, "which has a reader of its own"
