"""Byte-pair encoding learned from the corpus."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
from cache_files import index_path, tokenizer_path

from xtts.precompute.build.build_cache import BuildReport, build_cache
from xtts.precompute.build.commit import tokenizer_bytes
from xtts.precompute.check.verify import verify_cache
from xtts.precompute.workers.progress import NullProgress
from xtts.shared.cache.clip_index import read_index
from xtts.shared.config_files import load_config
from xtts.shared.errors import LockstepError
from xtts.shared.text.tokenizer import CHARACTERS, Tokenizer, learn_tokenizer, load_tokenizer
from xtts.trainer.evaluation.voice_description import Voice, voice_of

TEXTS = [
    "The other weather is there",
    "Whether the feather gathers there",
    "Another brother, rather than his mother",
    "There, then: the thing that they thought",
]


@pytest.fixture(scope="module")
def learned() -> Tokenizer:
    pytest.importorskip("tokenizers")
    return learn_tokenizer("bpe", {"en": TEXTS}, vocabulary=64, add_blank=False)


@pytest.fixture
def corpus(tmp_path) -> Path:
    pytest.importorskip("tokenizers")
    (tmp_path / "corpus" / "wavs").mkdir(parents=True)
    samples = 0.1 * np.random.default_rng(0).standard_normal(22_050)
    for number in range(len(TEXTS)):
        soundfile.write(tmp_path / "corpus" / "wavs" / f"{number}.wav", samples, 22_050)
    lines = (f"{number}|{text}|{text}\n" for number, text in enumerate(TEXTS))
    (tmp_path / "corpus" / "metadata.csv").write_text("".join(lines))
    return tmp_path / "corpus"


def build(data: Path, cache: Path, *, workers: int = 0, fresh: bool = False, **flags: object) -> BuildReport:
    config = load_config("tiny", flags={"text.tokenizer": "bpe", "text.bpe_vocabulary": 64, **flags})
    return build_cache(data, cache, config, workers=workers, progress=NullProgress(), fresh=fresh)


def test_common_pieces_are_one_token(learned):
    tokens = learned.encode("The OTHER \u65e5 weather!")
    assert learned.decode(tokens.ids) == "the other  weather!"
    assert tokens.unknown == "\u65e5"
    assert len(tokens.ids) < len("the other  weather!")
    assert learned.symbols[: len(CHARACTERS)] == CHARACTERS
    assert len(CHARACTERS) < learned.size <= 64
    assert learned.encode("quiz 7").ids == [CHARACTERS.index(c) for c in "quiz "]
    assert learned.encode("\u65e5 ").ids == []


def test_blanks_go_around_pieces(learned):
    plain, blanks = learned.encode("the other").ids, replace(learned, add_blank=True).encode("the other").ids
    assert blanks[1::2] == plain
    assert set(blanks[::2]) == {1}


def test_the_order_of_the_texts_and_the_process_do_not_matter(learned):
    assert learn_tokenizer("bpe", {"en": TEXTS[::-1]}, vocabulary=64, add_blank=False) == learned
    code = (
        "import sys; from xtts.shared.text.tokenizer import learn_tokenizer\n"
        "from xtts.precompute.build.commit import tokenizer_bytes\n"
        f"learned = learn_tokenizer('bpe', {{'en': {TEXTS!r}}}, vocabulary=64, add_blank=False)\n"
        "sys.stdout.buffer.write(tokenizer_bytes(learned))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    assert done.stdout == tokenizer_bytes(learned)


def test_cache_and_voice_hold_it_and_worker_counts_give_the_same_bytes(corpus, tmp_path, learned):
    spec = build(corpus, tmp_path / "one").spec
    assert verify_cache(tmp_path / "one", threads=1) == []
    assert build(corpus, tmp_path / "two", workers=2).spec == spec
    assert load_tokenizer(tokenizer_path(tmp_path / "one")) == learned
    assert spec.vocabulary == learned.size
    rows = read_index(index_path(tmp_path / "one"))
    lengths = {row.clip.text: row.tokens.token_length for row in rows}
    assert lengths == {text: len(learned.encode(text).ids) for text in TEXTS}
    record = json.loads(voice_of(tmp_path / "one", spec).model_dump_json())
    assert Voice.model_validate(record).symbol_table == learned
    assert Voice.model_validate(record).expand_numbers


def test_it_stays_while_clips_come_and_go_and_is_learned_again_with_other_settings(corpus, tmp_path):
    cache = tmp_path / "cache"
    build(corpus, cache)
    before = load_tokenizer(tokenizer_path(cache))
    metadata = corpus / "metadata.csv"
    metadata.write_text(metadata.read_text().replace("feather gathers", "zigzag zigzags"))
    build(corpus, cache)
    assert load_tokenizer(tokenizer_path(cache)) == before
    build(corpus, cache, **{"text.add_blank": True})
    assert load_tokenizer(tokenizer_path(cache)).symbols != before.symbols
    build(corpus, cache, **{"text.bpe_vocabulary": 65})
    again = load_tokenizer(tokenizer_path(cache))
    build(corpus, cache, fresh=True, **{"text.bpe_vocabulary": 65})
    assert load_tokenizer(tokenizer_path(cache)) == again


def test_without_the_library_the_message_names_the_extra(corpus, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(LockstepError, match=r"bpe without Hugging Face tokenizers.*lockstep-tts\[bpe\]"):
        build(corpus, tmp_path / "cache")
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("merges", [[["t"]], [["t", "qq"]], 7, [7], {"a": 1}])
def test_broken_merges_are_refused(learned, tmp_path, merges):
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps({**learned.to_json(), "merges": merges}))
    with pytest.raises(LockstepError, match="unreadable tokenizer"):
        load_tokenizer(path)
