
"""Learned alphabets: their symbols, and ids that stay."""

import json
import sys

import pytest
from tables import cases

from xtts.shared.errors import LockstepError
from xtts.shared.text.alphabet import lower_case
from xtts.shared.text.tokenizer import CHARACTERS, END, START, build_tokenizer, learn_tokenizer, load_tokenizer

CASES = cases(__file__)

COMMON = CHARACTERS[:16]


def learn(texts, kind="characters", **options):
    return learn_tokenizer(kind, texts, **{"add_blank": False, **options})


def test_the_alphabet_holds_the_letters_of_the_corpus():
    made = learn({"de": ["Größe: 5!", "Äß"]})
    assert made.symbols == (*COMMON, *sorted("größeä"))
    assert made.languages == ("de",)
    assert learn({"de": ["Äß", "Größe: 5!"]}) == made


@pytest.mark.parametrize(("library", "code", "text", "read"), CASES["spelled"])
def test_chinese_japanese_and_korean_are_spelled_as_read(library, code, text, read):
    pytest.importorskip(library)
    made = learn({code: [text]})
    assert made.decode(made.encode(text).ids) == read
    assert code != "cmn" or set("¹²³⁴⁵") < set(made.symbols)
    assert code != "ko" or len(made.encode(text).ids) == 15


def test_english_has_a_fixed_table():
    made = learn({"en": ["anything", "é"]})
    assert made == build_tokenizer("characters", add_blank=False)
    assert made.encode("Café, Straße!").ids == [CHARACTERS.index(c) for c in (START, *"cafe, strasse!", END)]


def test_new_letters_are_appended_and_none_is_removed():
    before = learn({"de": ["abc ü"]})
    after = learn({"de": ["zß a"]}, previous=before)
    assert after.symbols == (*before.symbols, "z", "ß")
    assert learn({"de": ["ü"]}, previous=after) == after
    assert learn({"fa": ["س"]}, previous=after).languages == ("de", "fa")


def test_several_languages_share_a_table_of_all_their_letters():
    made = learn({"en": ["hello"], "de": ["Größe"], "ru": ["да"]})
    assert made.symbols == (*COMMON, *sorted({*"abcdefghijklmnopqrstuvwxyz", *"größe", *"да"}))
    assert made.decode(made.encode("Größe").ids) == "grosse"
    assert made.decode(made.encode("Größe", "de").ids) == "größe"


@pytest.mark.parametrize(("language", "text", "lowered"), CASES["lower case"])
def test_lower_case_strips_nothing(language, text, lowered):
    assert lower_case(text, language) == lowered


@pytest.mark.parametrize(("library", "kind", "language", "extra"), CASES["libraries"])
def test_a_missing_library_is_reported_with_its_extra(monkeypatch, library, kind, language, extra):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(LockstepError, match=rf"lockstep-tts\[{extra}\]"):
        learn({language: ["好"]}, kind)


def test_bpe_learns_pieces_in_other_scripts():
    pytest.importorskip("tokenizers")
    texts = ["здравствуй, здравый здравец", "здравие и здравница", "क्या क्या क्या", "می‌روم می‌روم"]
    made = learn({"ru": texts}, "bpe", vocabulary=100)
    assert [made.decode(made.encode(text).ids) for text in texts] == texts
    assert not any(set(piece[1:]) & set(" ,") for piece in made.symbols[len(COMMON) :])
    grown = learn({"ru": ["щ"]}, "bpe", previous=made)
    assert (grown.symbols, grown.merges) == ((*made.symbols, "щ"), made.merges)
    assert made.encode("здравие").ids == grown.encode("здравие").ids


def test_more_letters_than_the_vocabulary_are_refused():
    pytest.importorskip("tokenizers")
    with pytest.raises(LockstepError, match=r"96 letters and signs .* --set text.bpe_vocabulary=192"):
        learn({"yue": ["".join(map(chr, range(0x4E00, 0x4E50)))]}, "bpe", vocabulary=64)


ENGLISH = ["The other weather is there", "Another brother, rather than his mother", "There, then: they thought"]


def test_pieces_are_learned_alike_in_any_order_and_broken_ones_are_refused(tmp_path):
    """Which they are: test_golden_tokens.py."""
    pytest.importorskip("tokenizers")
    made = learn({"en": ENGLISH}, "bpe", vocabulary=64)
    assert learn({"en": ENGLISH[::-1]}, "bpe", vocabulary=64) == made
    assert made.symbols == (*CHARACTERS, *dict.fromkeys(map("".join, made.merges)))
    assert len(CHARACTERS) < made.size <= 64
    path = tmp_path / "tokenizer.json"
    for merges in ([["t"]], 7):
        path.write_text(json.dumps({**json.loads(made.to_bytes()), "merges": merges}))
        with pytest.raises(LockstepError, match="unreadable tokenizer"):
            load_tokenizer(path)
