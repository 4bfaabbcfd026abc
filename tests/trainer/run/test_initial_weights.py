"""The start of a run: our voice or nothing by default, and `--init-from` across alphabets: rows are found by name."""

from pathlib import Path

import numpy as np
import pytest
from speaking_models import voice_of

from xtts.shared.cache.cache_spec import load_spec
from xtts.shared.config_files import load_config
from xtts.shared.errors import LockstepError
from xtts.shared.system.folder_lock import ReadLock
from xtts.shared.text.tokenizer import SPECIAL
from xtts.trainer.run.run_plan import NOTHING, make_plan
from xtts.trainer.run.setup import Setup
from xtts.trainer.speech.vocoder import OUR_VOICE
from xtts.trainer.stored.stored_model import take_rows

TOKENS, SPEAKERS = "acoustic_model/text_encoder/tokens/embeddings", "acoustic_model/decoder/speakers/embeddings"


def voice(symbols, **names):
    return voice_of((*SPECIAL, *symbols), **names)


def rows(count, start):
    return np.arange(start, start + count, dtype=np.float32)[:, None] * np.ones((1, 3), np.float32)


def test_rows_move_with_their_symbols_and_speakers_and_new_ones_keep_their_own_values():
    before, now = voice("abc", speakers=["ann", "bob"]), voice("cbäö", speakers=["bob", "cy", "ann"])
    arrays = {TOKENS: rows(7, 100), SPEAKERS: rows(2, 50), "other/kernel": rows(2, 7), "step": np.array(3)}
    initial = {TOKENS: rows(8, 0), SPEAKERS: rows(3, 0), "added/kernel": rows(1, 5)}
    taken = take_rows(arrays, initial, before, now)
    assert taken[TOKENS][:, 0].tolist() == [100, 101, 102, 103, 106, 105, 6, 7]
    assert taken[SPEAKERS][:, 0].tolist() == [51, 1, 50]
    assert taken["added/kernel"].tolist() == rows(1, 5).tolist()
    assert taken["other/kernel"] is arrays["other/kernel"]


def test_a_table_that_the_checkpoint_does_not_have_keeps_its_own_values():
    before, now = voice("a"), voice("a", speakers=["ann", "bob"], languages=["en", "fa"])
    arrays = {TOKENS: rows(5, 100)}
    taken = take_rows(arrays, {TOKENS: rows(5, 0), SPEAKERS: rows(2, 0)}, before, now)
    assert taken[SPEAKERS].tolist() == rows(2, 0).tolist()


def test_a_model_that_reads_phonemes_is_no_start_for_characters(tiny_cache, tmp_path):
    base = Path(__file__).parents[3] / "voices" / "base"
    settings = ["shapes.buckets=2", "split.validation_fraction=0.1"]
    with pytest.raises(LockstepError, match="base: a model that reads phonemes, expected characters, ") as caught:
        make_plan(["tiny"], settings, {}, cache=tiny_cache, out=tmp_path, resume=None, init_from=base)
    assert (
        caught.value.fix == "build the cache with --set text.tokenizer=phonemes (extra phonemes), or train from scratch"
    )


@pytest.fixture
def start(tiny_cache):
    """`start(hours=..., tokenizer=..., config=...)`: (the default start of a run, the lines printed)."""

    def choose(*assignments, hours=1.0, tokenizer="phonemes", config="tiny"):
        spec, said = load_spec(tiny_cache), list[str]()
        features = {**spec.features, "text": {**spec.features["text"], "tokenizer": tokenizer}}
        statistics = spec.statistics.model_copy(update={"seconds": 3600 * hours})
        spec = spec.model_copy(update={"features": features, "statistics": statistics})
        setup = Setup(
            config=load_config(config, assignments=assignments), cache=tiny_cache, named_cache=tiny_cache, spec=spec,
            lock=ReadLock(tiny_cache),
        )
        return setup.default_start(said.append), said

    return choose


def test_a_small_corpus_starts_from_our_voice(start):
    assert start() == (OUR_VOICE, ["starting from our voice: 1.0 hours of recordings, fewer than 3"])
    assert start(hours=3.0) == (
        None, [f"training from scratch: 3.0 hours of recordings (from our voice: --init-from {OUR_VOICE})"]
    )
    assert start(config="normal") == (None, []), "a larger size never did"
    assert start("model.voice_from=recording")[0] == OUR_VOICE, "what reads a recording begins anew"


@pytest.mark.parametrize(("assignments", "tokenizer", "reason"), [
    ([], "characters", "a model that reads phonemes, expected characters"),
    (["model.text_width=64"], "phonemes", "weights of model.text_width = 128, expected 64"),
])
def test_a_model_that_our_voice_does_not_fit_starts_from_nothing(start, assignments, tokenizer, reason):
    chosen, (said,) = start(*assignments, tokenizer=tokenizer)
    assert chosen is None
    assert said.startswith("training from scratch: ")
    assert reason in said


def test_nothing_can_be_asked_for(tiny_cache, tmp_path):
    settings, said = ["shapes.buckets=2", "split.validation_fraction=0.1"], list[str]()
    plan = make_plan(
        ["tiny"], settings, {}, cache=tiny_cache, out=tmp_path, resume=None, init_from=NOTHING, say=said.append
    )
    assert plan.init_from is None
    assert not any("starting" in line for line in said)
