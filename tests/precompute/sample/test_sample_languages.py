# ruff: noqa: RUF001 - letters of other scripts look like ours
"""Sentences in every language: its own script, enough of them, and its numbers in words."""

import re
import unicodedata
from functools import lru_cache
from itertools import islice

import pytest

from xtts.precompute.sample.sentences import SampleSentence, sentences

pytest.importorskip("espeakng_loader")

LETTERS = {
    "cmn": r"\u4e00-\u9fff，。？！；",
    "de": "A-Za-zÄÖÜäöüß ,.?!",
    "en": "A-Za-z ,.?!'-",
    "es": "A-Za-zÁÉÍÓÚÑáéíóúñü ,.?!¿¡",
    "fa": "ءآأئابپتثجچحخدذرزژسشصضطظعغفقکگلمنوهی\u200c\u064b\u0650 ،؛.؟!",  # neither Arabic kaf nor Arabic yeh
    "hi": "\u0901-\u0903\u0905-\u0939\u093c\u093e-\u094d ,।?!",
    "ru": "А-Яа-яЁё ,.?!",
}
"""What the normalised column may hold."""
STOPS = {"cmn": "。？！", "de": ".?!", "en": ".?!", "es": ".?!", "fa": ".؟!", "hi": "।?!", "ru": ".?!"}
CODES, COUNT = sorted(LETTERS), 1500
SPELLED_OUT = r"(?:(?:Jan|Nov)\. )?\d+(?::\d+)?|\b(?:Dr|Mr|Mrs|Prof|Capt|Sgt)\."
"""In the raw column."""


@lru_cache
def some(code: str) -> list[SampleSentence]:
    return list(islice(sentences(3, code), COUNT))


@pytest.mark.parametrize("code", CODES)
def test_sentences_use_their_alphabet_and_differ_if_spelled_out(code):
    for sentence in some(code):
        text = sentence.normalised
        assert re.fullmatch(f"[{LETTERS[code]}]+", text), text
        assert text[-1] in STOPS[code]
        assert not re.search(r"  | [,.?!،؛؟।]|\b(\w{3,}) \1\b|[<>{}|/]", sentence.raw + text), text
        assert unicodedata.normalize("NFC", text) == text
        assert not text[0].islower()
        pieces = re.split(SPELLED_OUT, sentence.raw)
        assert (len(pieces) > 1) == (sentence.raw != text)
        assert re.fullmatch(r"\w[\w\s\u0650\u0900-\u097f-]*".join(map(re.escape, pieces)), text)
    assert len({sentence.normalised for sentence in some(code)}) == COUNT
    assert 0.05 < sum(sentence.raw != sentence.normalised for sentence in some(code)) / COUNT < 0.7
    for mark in STOPS[code] + ("¿¡" if code == "es" else ""):
        assert sum(mark in sentence.raw for sentence in some(code)) > 50


def test_english_articles_and_titles_are_right():
    assert not [s for s in some("en") if re.search(r"\b[Aa] [aeio]|\b[Aa]n [^aeiou]", s.normalised)]
    assert any("Dr. " in s.raw and "Doctor " in s.normalised for s in some("en"))
