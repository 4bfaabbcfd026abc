# ruff: noqa: RUF001 - letters of other scripts look like ours
"""Sentences in other languages than English: their own script, enough of them, and said as words by espeak-ng."""

import ctypes
import hashlib
import random
import re
import unicodedata
from functools import lru_cache
from itertools import islice

import numpy as np
import pytest

from xtts.precompute.sample.espeak import SAMPLE_RATE_HZ, _fresh_library, speak
from xtts.precompute.sample.grammar import Grammar, languages_with_a_grammar, load_grammar
from xtts.precompute.sample.sentences import Sentence, language_named, sentences
from xtts.shared.errors import LockstepError

pytest.importorskip("espeakng_loader")

LETTERS = {
    "cmn": r"\u4e00-\u9fff，。？！；",
    "de": "A-Za-zÄÖÜäöüß ,.?!",
    "es": "A-Za-zÁÉÍÓÚÑáéíóúñü ,.?!¿¡",
    "fa": "ءآأئابپتثجچحخدذرزژسشصضطظعغفقکگلمنوهی\u200c\u064b\u0650 ،؛.؟!",  # neither Arabic kaf nor Arabic yeh
    "hi": "\u0901-\u0903\u0905-\u0939\u093c\u093e-\u094d ,।?!",
    "ru": "А-Яа-яЁё ,.?!",
}
"""What the normalised column may hold."""
STOPS = {"cmn": "。？！", "de": ".?!", "es": ".?!", "fa": ".؟!", "hi": "।?!", "ru": ".?!"}
CODES = sorted(LETTERS)
UTF8, IPA = 1, 2  # of espeak-ng's speak_lib.h


@lru_cache
def some(code: str) -> list[Sentence]:
    return list(islice(sentences(3, None, code), 3000))


def words_of(code: str) -> set[str]:
    """Words between spaces; in Chinese, where there are none, what a rule lists."""
    if code != "cmn":
        return {word for sentence in some(code) for word in re.findall(r"[^\s,.;?!¿¡،؛؟।]+", sentence.normalised)}
    alternatives = [item for subject in load_grammar(code).subjects for items in subject.values() for item in items]
    spoken = [re.sub(r"\{[^|]*\|(.*?)\}|<[^>]*>", r"\1 ", item) for item in alternatives]
    return {word for item in spoken for word in re.findall(r"[\u4e00-\u9fff]+", item)}


def read_back(texts, voice: str) -> list[str]:
    """IPA of each text."""
    answers = []
    with _fresh_library() as library:
        library.espeak_TextToPhonemes.restype = ctypes.c_char_p
        library.espeak_TextToPhonemes.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_int, ctypes.c_int]
        assert library.espeak_SetVoiceByName(voice.encode()) == 0
        for text in texts:
            buffer, spoken = ctypes.create_string_buffer(text.encode()), []
            pointer = ctypes.c_void_p(ctypes.addressof(buffer))
            while pointer.value:
                spoken.append((library.espeak_TextToPhonemes(ctypes.byref(pointer), UTF8, IPA) or b"").decode())
            answers.append(" ".join(spoken))
    return answers


def test_these_languages_are_known():
    assert languages_with_a_grammar() == CODES
    with pytest.raises(LockstepError, match=r"language: 'xx', expected one of en, cmn, de, es, fa, hi, ru"):
        next(sentences(0, None, "xx"))


def test_english_is_what_it_was():
    """Corpora made before there were other languages are continued."""
    told = "".join(f"{sentence.raw}|{sentence.normalised}\n" for sentence in islice(sentences(0), 20))
    digest = "d2805acf8e6455c5fec9a9ff8a0b092128608c19fb5620273faa57027fab67f7"
    assert hashlib.sha256(told.encode()).hexdigest() == digest


@pytest.mark.parametrize("code", CODES)
def test_there_are_words_and_sentences_enough(code):
    assert len(words_of(code)) >= 150
    assert len({sentence.normalised for sentence in some(code)}) == 3000
    rules = {name for subject in load_grammar(code).subjects for name in subject}
    used = {"short", "sentence"} | {
        found for subject in load_grammar(code).subjects for items in subject.values() for item in items
        for found in re.findall(r"<([^<>.?]+)", item)
    }  # fmt: skip
    assert used == rules


@pytest.mark.parametrize("code", CODES)
def test_every_reference_of_a_grammar_leads_somewhere(code):
    for subject in load_grammar(code).subjects:
        for items in subject.values():
            for item in items:
                assert item
                assert item.count("{") == item.count("|") == item.count("}")
                for name, form in re.findall(r"<([^<>.?]+)\.?(\d?)\??>", item):
                    assert all(len(word.split("/")) >= int(form or 1) for word in subject[name]), (name, form)


@pytest.mark.parametrize("code", ["en", *CODES])
def test_a_sentence_depends_on_seed_number_and_limit_only(code):
    many = some(code)[:100]
    assert list(islice(sentences(3, None, code), 10)) == many[:10]
    for other in (sentences(4, None, code), sentences(3, 4.0, code)):
        assert len({s.normalised for s in islice(other, 100)} & {s.normalised for s in many}) < 15


@pytest.mark.parametrize("code", CODES)
def test_letters_and_marks_are_those_of_the_language_and_columns_differ_in_numbers(code):
    for sentence in some(code):
        text = sentence.normalised
        assert re.fullmatch(f"[{LETTERS[code]}]+", text), text
        assert text[-1] in STOPS[code]
        assert not re.search(r"  | [,.?!،؛؟।]|\b(\w{3,}) \1\b|[<>{}|/]", sentence.raw + text), text
        assert unicodedata.normalize("NFC", text) == text
        assert not text[0].islower()
        assert (re.search(r"\d", sentence.raw) is not None) == (sentence.raw != text)
        pieces = re.split(r"\d+", sentence.raw)
        assert re.fullmatch(r"\w[\w\s\u0650\u0900-\u097f]*".join(map(re.escape, pieces)), text)
    assert 0.05 < sum(sentence.raw != sentence.normalised for sentence in some(code)) / 3000 < 0.7
    for mark in STOPS[code] + ("¿¡" if code == "es" else ""):
        assert sum(mark in sentence.raw for sentence in some(code)) > 100


@pytest.mark.parametrize(
    ("code", "number", "words"),
    [("cmn", "36", "三十六"), ("de", "95", "fünfundneunzig"), ("es", "22", "veintidós"), ("fa", "۴۵", "چهل و پنج"),
     ("hi", "48", "अड़तालीस"), ("ru", "56", "пятьдесят шесть")],
)  # fmt: skip
def test_numbers_are_said_in_words(code, number, words):
    found = [s for s in some(code) if re.search(rf"(?<!\d){number}(?!\d)", s.raw)]
    assert found
    assert all(words in sentence.normalised for sentence in found)


@pytest.mark.parametrize("code", CODES)
def test_espeak_says_every_word_as_a_word(code):
    words = sorted(words_of(code))
    spelled = read_back((" ".join(word) for word in words), code)
    for word, spoken, letters in zip(words, read_back(words, code), spelled, strict=True):
        assert spoken.strip(), word
        assert "(" not in spoken, f"{word} is said in another language: {spoken}"
        if code != "cmn" and len(word) > 2:  # a Chinese character alone is a syllable of the word
            assert re.sub(r"[\sˈˌ]", "", spoken) != re.sub(r"[\sˈˌ]", "", letters), f"{word} is spelled: {spoken}"


def test_reading_back_finds_what_is_not_a_word():
    (foreign,) = read_back(["牛奶有点儿凉"], "cmn")
    spelled, letters = read_back(["ФМР", "Ф М Р"], "ru")
    assert "(en)" in foreign
    assert re.sub(r"[\sˈˌ]", "", spelled) == re.sub(r"[\sˈˌ]", "", letters)


@pytest.mark.parametrize("code", CODES)
def test_sentences_last_as_long_as_expected(code):
    language = language_named(code)
    lengths = np.quantile([language.expected_seconds(sentence.normalised) for sentence in some(code)], [0, 0.5, 1])
    assert lengths[0] < 1.5
    assert 5.5 < lengths[1] < 7.5
    assert 8.5 < lengths[2] <= 9.5
    for sentence in some(code)[:5]:
        seconds = len(speak(sentence.normalised, language.voice)) / SAMPLE_RATE_HZ
        assert seconds == pytest.approx(language.expected_seconds(sentence.normalised), rel=0.25)


def test_a_grammar_reads_forms_options_and_subjects():
    rules = {"short": ["<noun.2> <more?>!"], "more": ["again"], "noun": ["Haus/Hauses"]}
    grammar = Grammar(
        voice="de", version=1, subjects=[rules], first_seconds=0.0, letter_seconds=0.1, pause_seconds=0.5
    )  # fmt: skip
    assert grammar.expected_seconds("Eins, zwei. Drei.") == pytest.approx(1.7 + 1.0)
    for seconds, text in ((0.7, "Hauses!"), (1.3, "Hauses again!")):
        assert {grammar.compose(random.Random(seed), seconds) for seed in range(20)} == {text}
