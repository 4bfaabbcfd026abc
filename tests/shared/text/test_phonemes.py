# ruff: noqa: RUF001 - IPA letters look like others
"""Phonemes, in processes of their own: speech tests need espeak-ng not to be loaded in this one."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from cache_files import index_path

from xtts.precompute.build.build_cache import build_cache
from xtts.precompute.check.verify import verify_cache
from xtts.precompute.workers.pool import WorkerPool
from xtts.precompute.workers.progress import NullProgress
from xtts.shared.cache.cache_spec import load_spec
from xtts.shared.cache.clip_index import Kept, read_index
from xtts.shared.config_files import load_config
from xtts.shared.text.phonemes import IPA, phonemise
from xtts.shared.text.tokenizer import PHONEMES, build_tokenizer

pytest.importorskip("espeakng_loader")

SENTENCES = json.loads((Path(__file__).parent / "golden_sentences.json").read_text(encoding="utf-8"))
CODE = """
import json, sys
from xtts.shared.errors import LockstepError
from xtts.shared.text.phonemes import phonemise, spelled_letters
def say(text, code):
    try: return [phonemise(text, code), spelled_letters(text, code)]
    except LockstepError as error: return [str(error), ""]
print(json.dumps([say(*pair) for pair in json.load(sys.stdin)]))
"""


def say(*pairs):
    """[IPA or the error, letters that would be spelled] of (text, language) one after the other."""
    run = [sys.executable, "-c", CODE]
    done = subprocess.run(run, input=json.dumps(pairs), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def spoken(*pairs):
    return [ipa for ipa, _ in say(*pairs)]


ENGLISH = {
    "Hello, world!": "həlˈoʊ, wˈɜːld!",
    "Printing, in the only sense; really?": "pɹˈɪntɪŋ, ɪnðɪ ˈoʊnli sˈɛns; ɹˈiəli?",
    'He said: "no." Then left': "hiː sˈɛd: nˈoʊ. ðˈɛn lˈɛft",
    "wait \u2014 what": "wˈeɪt- wˌʌt",
    "Mr. Smith paid $3.14.": "mˈɪstɚ smˈɪθ pˈeɪd dˈɑːlɚ θɹˈiː pɔɪnt wˈʌn fˈɔːɹ.",  # no sentence ends inside
    "Dr. Lee": "dˈɑːktɚ lˈiː",
    "in 1999.": "ɪn nˈaɪntiːnhˈʌndɹɪd nˈaɪnti nˈaɪn.",
    **dict.fromkeys(["", " ", "...", "?!", "\x00"], ""),
}


def test_english_words_stress_punctuation_numbers_and_abbreviations():
    assert dict(zip(ENGLISH, spoken(*((text, "en") for text in ENGLISH)), strict=True)) == ENGLISH


def test_the_voice_changes_with_the_language_and_back():
    hello, hallo = ("Hello, Jan!", "en"), ("Hallo, Jan!", "de")
    found = spoken(hello, hallo, hello, ("Привет", "ru"), hallo)
    assert found[0] == found[2] == "həlˈoʊ, dʒˈæn!"
    assert found[1] == found[4] == "hˈaloː, jˈɑːn!"
    assert found[3] == "prʲivʲˈet"


def test_order_and_company_do_not_matter():
    """Workers speak the clips of a corpus in any order."""
    pairs = [(text, code) for code, some in SENTENCES.items() for text in [*some, "IBM naïve 3.50 € 日本 Жук", "१२ ५"]]
    pairs += [(text, "en") for text in ("Été \U0001f600 naïve?", "a" * 3000, "x, " * 500)]
    mixed = pairs[::7] + [pair for i, pair in enumerate(pairs) if i % 7]
    alone = dict(zip(mixed, spoken(*mixed), strict=True))
    assert alone == dict(zip(pairs, spoken(*pairs), strict=True))
    assert spoken(pairs[-3]) == [alone[pairs[-3]]]


def test_the_table_holds_what_espeak_writes(real_clips):
    texts = [line.split("|")[2] for line in (real_clips / "metadata.csv").read_text().splitlines()]
    assert set("".join(spoken(*((text, "en") for text in texts)))) <= set(PHONEMES)
    assert len(set(IPA)) == len(IPA)
    assert len(PHONEMES) == build_tokenizer("phonemes", add_blank=False).size


def test_marks_of_a_language_switch_and_of_notation_are_gone():
    """Tones and pauses of other languages are in the golden tokens."""
    wanted = {
        ("hello мир", "ru"): "həlˈəʊ mʲˈir", ("je ne sais", "fr"): "ʒə nə sˈɛ", ("麻", "cmn"): "mˈɑ²",
        ("hello 你好", "cmn"): "həlˈəʊ ni³χˈɑu³", ("出租车，吃饭。", "cmn"): "tʂhˈu¹ tsˈu¹ tʂhˈɤ¹, tʂhˈɨ¹ fˈa⁴n.",
    }  # fmt: skip
    assert dict(zip(wanted, spoken(*wanted), strict=True)) == wanted


def test_letters_without_a_reading_are_named_and_left_out():
    (german, spelled), (same, none), (english, foreign) = say(("ja 日 ж", "de"), ("ja", "de"), ("so 日", "en"))
    assert (german, spelled) == (same, "ж日")
    assert none == ""
    assert foreign == "日"
    assert english.startswith("sˌoʊ tʃ")  # as English caches have it


def test_no_letter_of_the_goldens_would_be_spelled():
    assert {code: told for code, some in SENTENCES.items() for _, told in say(*((t, code) for t in some)) if told} == {}


def test_a_language_that_is_spelled_and_one_without_a_voice_are_refused():
    japanese, none = spoken(("あ", "ja"), ("a", "qqq"))
    assert "phonemes in Japanese, which espeak-ng spells letter by letter" in japanese
    assert "--set text.tokenizer=characters" in japanese
    assert "espeak-ng has no voice qqq" in none


def test_a_cache_of_phonemes(tiny_corpus, tmp_path):
    flags = {"text.tokenizer": "phonemes", "text.add_blank": True, "shapes.max_reject_fraction": 0.9}
    cache, config = tmp_path / "cache", load_config("tiny", flags=flags)
    build_cache(tiny_corpus, cache, config, workers=0, progress=NullProgress())
    assert verify_cache(cache, threads=1) == []
    assert load_spec(cache).vocabulary == len(PHONEMES)
    row = next(row for row in read_index(index_path(cache)) if isinstance(row, Kept))
    with WorkerPool(1) as pool:
        (said,) = pool.run(phonemise, [row.clip.text])
    assert row.tokens.token_length == 2 * sum(symbol in PHONEMES for symbol in said) + 1
    assert row.tokens.left_out == ""
