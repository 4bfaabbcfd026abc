import pytest

from xtts.shared.errors import LockstepError
from xtts.shared.text.alphabet import fold_english
from xtts.shared.text.tokenizer import CHARACTERS, build_tokenizer, learn_tokenizer, load_tokenizer

PLAIN = build_tokenizer("characters", add_blank=False)
BLANKS = build_tokenizer("characters", add_blank=True)


def test_the_symbol_table_is_fixed():
    assert CHARACTERS[:5] == ("<pad>", "<blank>", "<start>", "<end>", " ")
    assert "".join(CHARACTERS[5:]) == "!'\"(),-.:;?abcdefghijklmnopqrstuvwxyz"
    assert len(set(CHARACTERS)) == len(CHARACTERS) == PLAIN.size


def test_a_text_gets_start_and_end_and_blanks_around_every_token():
    a, b = (CHARACTERS.index(letter) for letter in "ab")
    assert PLAIN.encode("ab").ids == [2, a, b, 3]
    assert BLANKS.encode("ab").ids == [1, 2, 1, a, 1, b, 1, 3, 1]


def test_typography_case_accents_and_spaces_are_folded():
    assert fold_english("  \u201cÇa  va,\u201d l\u2019été \u2014 Straße\n") == '"ca va," l\'ete - strasse'


def test_unknown_characters_are_counted_and_left_out():
    tokens = PLAIN.encode("5 cats, 5 日")
    assert tokens.left_out == {"5": 2, "日": 1}
    assert PLAIN.decode(tokens.ids) == " cats,  "
    assert PLAIN.encode("日本 語").ids == []
    assert BLANKS.encode("").ids == []


SIGNS = {
    "five/twelve": "five twelve", "home_page": "home page", "x*y": "x y", "* a ** b *": "a b", "so */ !": "so!",
    "a\U0001f600b \u2022 (c)": "a b (c)", "so\u00adft ze\u200bro": "soft zero", "a5b \u65e5c": "ab c",
    "a @ , b": "a, b",
}
"""Only signs separate words; letters and digits without a symbol, and what is invisible, do not."""


@pytest.mark.parametrize("kind", ["characters", "bpe"])
@pytest.mark.parametrize("language", ["en", "de"])
def test_a_sign_without_a_symbol_separates_words_and_is_counted(kind, language):
    if kind == "bpe":
        pytest.importorskip("tokenizers")
    tokenizer = learn_tokenizer(kind, {language: ["abcdefghijklmnopqrstuvwxyz", *SIGNS.values()]}, add_blank=False)
    for text, wanted in SIGNS.items():
        tokens = tokenizer.encode(text)
        assert tokenizer.decode(tokens.ids) == wanted, text
        if language == "de":
            assert set(tokens.left_out) == {c for c in text if c in "*/_@5\U0001f600\u2022\u65e5"}, text
    assert tokenizer.encode("a*b*c").left_out == {"*": 2}


def test_a_tokenizer_of_letters_refuses_phonemes():
    with pytest.raises(LockstepError, match=r"clip 7: phonemes, \[\[wɜd\]\], expected letters.*tokenizer=phonemes"):
        PLAIN.encode("a [[wɜd]]", location="clip 7")


def test_a_tokenizer_file_is_read_back_or_refused(tmp_path):
    path = tmp_path / "tokenizer.json"
    for made in (BLANKS, learn_tokenizer("characters", {"de": ["ja"], "fa": ["بله"]}, add_blank=True)):
        path.write_bytes(made.to_bytes())
        assert load_tokenizer(path) == made
    path.write_text("{}")
    with pytest.raises(LockstepError, match="unreadable tokenizer"):
        load_tokenizer(path)
    with pytest.raises(LockstepError, match="no such file"):
        load_tokenizer(tmp_path / "absent.json")
