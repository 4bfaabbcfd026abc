"""`--init-from` across alphabets: rows are found by name."""

from pathlib import Path

import numpy as np
import pytest

from xtts.shared.cache.bucket_shapes import BucketShape
from xtts.shared.errors import LockstepError
from xtts.shared.text.tokenizer import SPECIAL, Tokenizer
from xtts.trainer.run.run_plan import make_plan
from xtts.trainer.stored.stored_model import shared_names, take_rows
from xtts.trainer.stored.voice_description import Voice

TOKENS, ENCODER_SPEAKERS = "acoustic_model/text_encoder/tokens/embeddings", "acoustic_model/decoder/speakers/embeddings"


def voice(symbols, *, speakers=(), languages=("en",)):
    tokenizer = Tokenizer(
        kind="characters", add_blank=False, symbols=(*SPECIAL, *symbols), merges=(), languages=languages
    )
    return Voice(
        profile="hifigan", mel_mean=-5.0, mel_deviation=2.0, tokenizer=tokenizer, speakers=list(speakers),
        speaker_languages={},
        expand_numbers=False, trim_silence_db=None, loudness_lufs=None,
        shapes=[BucketShape(tokens=8, frames=64)],
    )  # fmt: skip


def rows(count, start):
    return np.arange(start, start + count, dtype=np.float32)[:, None] * np.ones((1, 3), np.float32)


def test_rows_move_with_their_symbols_and_new_ones_keep_their_own_values():
    before, now = voice("abc"), voice("cbäö")
    arrays = {TOKENS: rows(7, 100), "other/kernel": rows(2, 7), "step": np.array(3)}
    taken = take_rows(arrays, {TOKENS: rows(8, 0)}, before, now)
    assert taken[TOKENS][:, 0].tolist() == [100, 101, 102, 103, 106, 105, 6, 7]
    assert taken["other/kernel"] is arrays["other/kernel"]
    assert shared_names(before, now) == "6 of 8 symbols"


def test_a_table_that_the_checkpoint_does_not_have_keeps_its_own_values():
    before, now = voice("a"), voice("a", speakers=["ann", "bob"], languages=["en", "fa"])
    arrays = {TOKENS: rows(5, 100)}
    taken = take_rows(arrays, {TOKENS: rows(5, 0), ENCODER_SPEAKERS: rows(2, 0)}, before, now)
    assert taken[ENCODER_SPEAKERS].tolist() == rows(2, 0).tolist()
    assert shared_names(before, now) == "0 of 2 speakers, 1 of 2 languages"
    assert shared_names(now, before) == "1 of 1 languages"


def test_speakers_are_found_by_name():
    before, now = voice("a", speakers=["ann", "bob"]), voice("a", speakers=["bob", "cy", "ann"])
    arrays = {TOKENS: rows(5, 100), ENCODER_SPEAKERS: rows(2, 50)}
    taken = take_rows(arrays, {TOKENS: rows(5, 0), ENCODER_SPEAKERS: rows(3, 0)}, before, now)
    assert taken[ENCODER_SPEAKERS][:, 0].tolist() == [51, 1, 50]


def test_identical_names_print_nothing():
    assert shared_names(voice("a", speakers=["ann"]), voice("a", speakers=["ann"])) == ""


def test_a_model_that_reads_phonemes_is_no_start_for_characters(tiny_cache, tmp_path):
    base = Path(__file__).parents[3] / "voices" / "base"
    settings = ["shapes.buckets=2", "split.validation_fraction=0.1"]
    with pytest.raises(LockstepError, match="base: a model that reads phonemes, expected characters, ") as caught:
        make_plan(["tiny"], settings, {}, cache=tiny_cache, out=tmp_path, resume=None, init_from=base)
    assert (
        caught.value.fix == "build the cache with --set text.tokenizer=phonemes (extra phonemes), or train from nothing"
    )
