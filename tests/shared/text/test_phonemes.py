# ruff: noqa: RUF001 - IPA letters look like others
"""Phonemes, in processes of their own: speech tests need espeak-ng not to be loaded in this one."""

import json
import subprocess
import sys
from collections.abc import Callable

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


@pytest.fixture(scope="module")
def speak() -> Callable[[list[str]], list[str]]:
    """IPA of some texts."""

    def run(texts: list[str]) -> list[str]:
        code = (
            "import json, sys; from xtts.shared.text.phonemes import phonemise;"
            "print(json.dumps([phonemise(text) for text in json.load(sys.stdin)]))"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], input=json.dumps(texts), capture_output=True, text=True, check=True
        )
        return json.loads(done.stdout)

    return run


def test_words_stress_and_punctuation(speak):
    assert speak(
        ["Hello, world!", "Printing, in the only sense; really?", 'He said: "no." Then left', "wait \u2014 what"]
    ) == [
        "həlˈoʊ, wˈɜːld!",
        "pɹˈɪntɪŋ, ɪnðɪ ˈoʊnli sˈɛns; ɹˈiəli?",
        "hiː sˈɛd: nˈoʊ. ðˈɛn lˈɛft",
        "wˈeɪt- wˌʌt",
    ]


def test_numbers_and_abbreviations_are_spoken_and_end_no_sentence(speak):
    assert speak(["Mr. Smith paid $3.14.", "Dr. Lee", "in 1999."]) == [
        "mˈɪstɚ smˈɪθ pˈeɪd dˈɑːlɚ θɹˈiː pɔɪnt wˈʌn fˈɔːɹ.",
        "dˈɑːktɚ lˈiː",
        "ɪn nˈaɪntiːnhˈʌndɹɪd nˈaɪnti nˈaɪn.",
    ]


def test_nothing_to_speak_gives_nothing(speak):
    assert speak(["", " ", "...", "?!", "\x00"]) == ["", "", "", "", ""]


def test_order_and_company_do_not_matter(speak):
    texts = ["One, two.", "Été \U0001f600 naïve?", "Three; four!", "a" * 3000, "x, " * 500]
    assert speak(texts[::-1])[::-1] == speak(texts) == [speak([text])[0] for text in texts]


def test_the_table_holds_what_espeak_writes(speak, real_clips):
    texts = [line.split("|")[2] for line in (real_clips / "metadata.csv").read_text().splitlines()]
    assert set("".join(speak(texts))) <= set(PHONEMES)
    assert len(set(IPA)) == len(IPA)
    assert len(PHONEMES) == build_tokenizer("phonemes", add_blank=False).size


def test_a_cache_of_phonemes(tiny_corpus, tmp_path):
    config = load_config(
        "tiny", flags={"text.tokenizer": "phonemes", "text.add_blank": True, "shapes.max_reject_fraction": 0.9}
    )
    build_cache(tiny_corpus, tmp_path / "cache", config, workers=0, progress=NullProgress())
    assert verify_cache(tmp_path / "cache", threads=1) == []
    assert load_spec(tmp_path / "cache").vocabulary == len(PHONEMES)
    row = next(row for row in read_index(index_path(tmp_path / "cache")) if isinstance(row, Kept))
    with WorkerPool(1) as pool:
        (spoken,) = pool.run(phonemise, [row.clip.text])
    assert row.tokens.token_length == 2 * sum(symbol in PHONEMES for symbol in spoken) + 1
    assert row.tokens.left_out == ""
