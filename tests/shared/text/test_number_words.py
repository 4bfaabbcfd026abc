"""Numbers of other languages: in their own words, or left alone."""

import pytest

from xtts.shared.languages import LANGUAGES
from xtts.shared.text.number_contexts import digit_names
from xtts.shared.text.text_normalization import expand
from xtts.shared.text.tokenizer import learn_tokenizer


@pytest.mark.parametrize(("language", "written", "spoken"), [
    ("de", "Am 3. Mai um 10:30, 1.2", "Am dritten Mai um zehn Uhr dreißig, eins Punkt zwei"),
    ("fr", "3,5 et 5 $", "trois virgule cinq et cinq dollars"),
    ("ru", "5 ₽, 3,5 и 25%", "пять рублей, три целых пять десятых и двадцать пять процентов"),
    ("ar", "5 €", "خمسة يورو"),
    ("tr", "%25 ve 3'te", "yüzde yirmi beş ve üçte"),
    ("pl", "-5 i 3", "minus pięć i trzy"),
    ("de", "7" * 20, " ".join(["sieben"] * 20)),
    ("fr", "le 01/05/2024 à 14:30", "le premier mai deux mille vingt-quatre à quatorze heures trente"),
    ("fr", "le 3e, 25%, 9:00", "le troisième, vingt-cinq pour cent, neuf heures"),
    ("es", "2024-05-12, el 1.º, la 3ª", "doce de mayo de dos mil veinticuatro, el primero, la tercera"),
    ("it", "12/05/2024 14:30", "dodici maggio duemilaventiquattro quattordici e trenta"),
    ("nl", "de 3e om 9:30", "de derde om negen uur dertig"),
    ("sv", "12.5.2024, 3:e", "tolfte maj tvåtusen tjugofyra, tredje"),
    ("da", "3. maj 1987", "tredje maj nitten hundrede syvogfirs"),
    ("ru", "12.05.2024, 14:30, 1-й",
     "двенадцатого мая две тысячи двадцать четвертого года, четырнадцать тридцать, первый"),
    ("fa", "12/05/2024 14:30", "دوازدهم مه دو هزار و بیست و چهار چهارده و سی دقیقه"),
])
def test_numbers_dates_and_times_are_read_in_their_language(language, written, spoken):
    assert expand(written, language) == spoken


@pytest.mark.parametrize("language", ["cmn", "am", "sr", "xyz", "th"])
def test_no_english_word_gets_into_another_language(language):
    said = expand("12345 Dr. St. $5 & 3rd 12:30", language)
    assert not any(word in said for word in ("Doctor", "five", "dollar", "and", "third", "Street"))
    if language != "th":
        assert said == "12345 Dr. St. $5 & 3rd 12:30"


@pytest.mark.parametrize(("language", "written", "spoken"), [
    ("mr", "१२ और 3x", "एक दोन और तीन x"),
    ("bg", "05.3", "нула пет.три"),
    ("cmn", "ni3 hao3 10", "ni³ hao³ yi¹ ling²"),
    ("uz", "8!", "sakkiz!"),
])
def test_digits_are_read_one_by_one_without_other_words(language, written, spoken):
    if language == "cmn":
        pytest.importorskip("pypinyin")
    tokenizer = learn_tokenizer("characters", {language: [written]}, add_blank=False)
    tokens = tokenizer.encode(expand(written, language))
    assert (tokenizer.decode(tokens.ids), tokens.left_out) == (spoken, {})


def test_every_language_has_words_for_digits():
    missing = {code for code in LANGUAGES if expand("7", code) == "7" and len(digit_names(code)) != 10}
    assert missing == {"ja"}, "which has a reader of its own"
