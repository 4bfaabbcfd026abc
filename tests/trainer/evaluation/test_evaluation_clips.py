"""The clips that speech is compared with, and whose recording lends a sentence its voice."""

from dataclasses import replace

import pytest
from cache_files import index_path

from xtts.shared.cache.cache_spec import load_spec
from xtts.shared.cache.clip_index import read_index
from xtts.shared.errors import LockstepError
from xtts.trainer.evaluation.evaluation_clips import is_question, read_clips, some_clips

ALL = 10**6


def every_clip(spec):
    return some_clips(spec, "train", ALL)


def held_out(spec):
    return some_clips(spec, "validation", ALL)


@pytest.fixture(scope="module")
def voice(tmp_path_factory, make_plan):
    plan = make_plan(tmp_path_factory.mktemp("plan") / "run")
    plan.folder.path.mkdir()
    plan.folder.write_run_files(plan.config, plan.cache, plan.spec)
    return plan.folder.voice()


def test_held_out_clips_are_those_of_the_index(voice, tiny_cache):
    clips = read_clips(tiny_cache, voice, held_out)
    rows = {row.clip.id: row for row in read_index(index_path(tiny_cache)) if row.split == "validation"}
    assert [clip.clip_id for clip in clips] == sorted(rows)
    for clip in clips:
        assert clip.ids == voice.tokenizer.encode(rows[clip.clip_id].clip.text).ids
        assert clip.mel.shape == (rows[clip.clip_id].mel_length, 80)


def with_symbols(voice, symbols):
    return voice.model_copy(update={"tokenizer": replace(voice.tokenizer, symbols=symbols)})


def test_clips_of_another_corpus_get_the_voices_tokens(voice, tiny_cache, capsys):
    *same, last, before = voice.tokenizer.symbols
    swapped = with_symbols(voice, (*same, before, last))
    clips = read_clips(tiny_cache, swapped, every_clip)
    rows = {row.clip.id: row for row in read_index(index_path(tiny_cache))}
    assert [clip.ids for clip in clips] == [
        swapped.tokenizer.encode(rows[clip.clip_id].clip.text).ids for clip in clips
    ]
    others = swapped.model_copy(update={"speakers": ["x", "y"]})
    assert len(read_clips(tiny_cache, others, every_clip, any_speaker=True)) == len(clips)
    lacking = with_symbols(voice, tuple("E" if symbol == "w" else symbol for symbol in voice.tokenizer.symbols))
    without = [clip.clip_id for clip in clips if "w" not in rows[clip.clip_id].clip.text]
    assert 0 < len(without) < len(clips)
    assert [clip.clip_id for clip in read_clips(tiny_cache, lacking, every_clip)] == without
    assert "skipped: w not in the vocabulary\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changes", "message"), [({"profile": "tacotron2"}, "mel profile hifigan"), ({"speakers": ["x"]}, "speakers")]
)
def test_a_cache_of_another_voice_is_refused(voice, tiny_cache, changes, message):
    with pytest.raises(LockstepError, match=message):
        read_clips(tiny_cache, voice.model_copy(update=changes), held_out)


def test_some_clips_are_of_all_buckets_in_their_shares(voice, tiny_cache):
    spec = load_spec(tiny_cache)
    total = sum(bucket.clips("train") for bucket in spec.buckets)
    some = read_clips(tiny_cache, voice, lambda spec: some_clips(spec, "train", total // 2))
    assert len(some) == total // 2
    clips = {shard.file: most for shard, most in some_clips(spec, "train", total // 2)}
    shares = [sum(clips.get(shard.file, 0) for shard in bucket.train) for bucket in spec.buckets]
    assert shares == pytest.approx([bucket.clips("train") / 2 for bucket in spec.buckets], abs=1)
    assert [sum(most for _, most in some_clips(spec, "train", count)) for count in (1, 2, ALL)] == [1, 2, total]


def test_a_question_ends_with_its_mark():
    assert all(map(is_question, ("Now?", 'He asked, "Now?"', "Now (or never?)", "Now?!", "«اکنون؟»", "now? ")))
    assert not any(map(is_question, ("Now.", "Now? Yes.", '"Now?" he asked.', "")))
