"""Byte-pair encoding learned from the corpus."""

import json
from dataclasses import replace

import pytest
from cache_files import build_cache, index_path, tokenizer_path

from xtts.precompute.check.verify import check_cache
from xtts.shared.cache.clip_index import read_index
from xtts.shared.config_files import load_config
from xtts.shared.errors import LockstepError
from xtts.shared.text.tokenizer import CHARACTERS, Tokenizer, learn_tokenizer, load_tokenizer
from xtts.trainer.speech.voice_description import Voice
from xtts.trainer.stored.run_folder import voice_of

TEXTS = [
    "The other weather is there", "Whether the feather gathers there",
    "Another brother, rather than his mother", "There, then: the thing that they thought",
]


@pytest.fixture(scope="module")
def learned() -> Tokenizer:
    pytest.importorskip("tokenizers")
    return learn_tokenizer("bpe", {"en": TEXTS}, vocabulary=64, add_blank=False)


def test_common_pieces_are_one_token(learned):
    tokens = learned.encode("The OTHER \u65e5 weather!")
    assert learned.decode(tokens.ids) == "the other  weather!"
    assert [*tokens.left_out] == ["\u65e5"]
    assert len(tokens.ids) < len("the other  weather!")
    assert learned.symbols[: len(CHARACTERS)] == CHARACTERS
    assert len(CHARACTERS) < learned.size <= 64
    assert replace(learned, add_blank=True).encode("the").ids[1::2] == learned.encode("the").ids
    assert learned.symbols[len(CHARACTERS) :] == tuple(dict.fromkeys(map("".join, learned.merges))), "in any process"
    assert learn_tokenizer("bpe", {"en": TEXTS[::-1]}, vocabulary=64, add_blank=False) == learned


def test_bpe_is_stored_and_kept_when_clips_come_and_go(learned, tone_corpus, tmp_path):
    corpus, cache = tone_corpus(tmp_path / "corpus", len(TEXTS), seconds=(1.5, 1.6)), tmp_path / "cache"

    def build(texts, vocabulary=64, **options):
        lines = (f"tone-{i:04d}|{text}\n" for i, text in enumerate(texts))
        (corpus / "metadata.csv").write_text("".join(lines))
        config = load_config(
            "tiny", flags={"text.tokenizer": "bpe", "text.add_blank": False, "text.bpe_vocabulary": vocabulary}
        )
        spec = build_cache(corpus, cache, config, **options).spec
        return spec, load_tokenizer(tokenizer_path(cache))

    spec, stored = build(TEXTS)
    assert check_cache(cache, threads=1) == []
    assert (stored, spec.vocabulary) == (learned, learned.size)
    lengths = {row.clip.text: row.token_length for row in read_index(index_path(cache))}
    assert lengths == {text: len(learned.encode(text).ids) for text in TEXTS}
    voice = Voice.model_validate_json(voice_of(cache, spec).model_dump_json())
    assert (voice.tokenizer, voice.expand_numbers) == (learned, True)
    others = [*TEXTS[1:], "Zigzag zigzags"]
    assert build(others)[1] == learned
    again = build(others, vocabulary=65)[1]
    assert again.symbols != learned.symbols
    assert build(others, vocabulary=65, fresh=True)[1] == again


@pytest.mark.parametrize("merges", [[["t"]], [["t", "qq"]], 7])
def test_broken_merges_are_refused(learned, tmp_path, merges):
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps({**learned.to_json(), "merges": merges}))
    with pytest.raises(LockstepError, match="unreadable tokenizer"):
        load_tokenizer(path)
