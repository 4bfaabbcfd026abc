import hashlib
import json
import random
from collections.abc import Sequence

import numpy as np
import pytest
from tables import cases

from xtts.precompute.features.filters import filter_by_lengths
from xtts.precompute.pipeline.plan import Plan, PreviousPlan, digest_columns, held_out, plan_cache, plan_columns
from xtts.shared.cache.bucket_shapes import BucketShape
from xtts.shared.cache.clip_index import Clip, IndexRow, table_of
from xtts.shared.config import Config
from xtts.shared.config_files import load_config

CASES = cases(__file__)


def row(name: str, tokens: int = 20, frames: int = 100, speaker: str = "") -> IndexRow:
    clip = Clip(name, speaker, "t", f"{name}.wav")
    return IndexRow(clip=clip, token_length=tokens, mel_length=frames, seconds=1.0)


def config(**values: object) -> Config:
    return load_config("tiny", flags={f"shapes.{key}": value for key, value in values.items()})


def rows(count: int) -> list[IndexRow]:
    return [row(f"clip-{i}", 10 + i % 30, 60 + (i * 37) % 500) for i in range(count)]


def plan_clips(clips: Sequence[IndexRow], settings: Config, previous: PreviousPlan | None) -> Plan:
    return plan_cache(plan_columns(table_of(clips), settings.split.seed), settings, previous)


def members(plan: Plan, clips: Sequence[IndexRow]) -> dict[str, list[str]]:
    """File of each shard to the ids of its clips in order."""
    return {shard.file: [clips[i].clip.id for i in shard.clips] for shard in plan.shards}


def digests(count: int) -> np.ndarray:
    return (digest_columns(0, [f"c{i}" for i in range(count)])[0] >> np.uint64(32)).astype(np.uint32)


def held(texts, fraction, voices=None):
    return held_out(texts, np.zeros(len(texts), np.int32) if voices is None else np.array(voices, np.int32), fraction)


@pytest.mark.parametrize("count", [2, 3, 5])
def test_at_least_one_and_never_all_are_held_out(count):
    assert held(digests(count), 1e-9).sum() == 1
    assert held(digests(count), 1.0).sum() == count - 1
    assert not held(digests(count), 0.0).any()
    assert not held(digests(1), 0.5).any()
    assert held(np.repeat(digests(count), 2), 1e-9).sum() == 2, "both readings of a text"
    assert not held(np.repeat(digests(1), count), 0.5).any(), "one text cannot be on both sides"


@pytest.mark.parametrize(("count", "fewest"), [(9, 1), (10, 2), (25, 5), (40, 8), (90, 8)])
def test_eight_texts_are_held_out_or_a_fifth(count, fewest):
    few = held(np.repeat(digests(count), 2), 1e-9)
    assert few.sum() == 2 * fewest
    assert (held(digests(count), 0.5) >= few[::2]).all(), "the same ones, and more"
    assert held(digests(2_000), 0.05).sum() == (digests(2_000) < 0.05 * 2**32).sum(), "of a large corpus a share"


def test_the_only_text_of_a_voice_is_trained_on():
    texts, voices = digests(40), [*[0] * 36, 1, 2, 3, 4]
    for fraction in (1e-9, 0.5, 1.0):
        assert not held(texts, fraction, voices)[36:].any()
    assert held(texts, 1e-9, voices).sum() == 8
    assert held(np.repeat(texts, 2), 1.0, [*[0] * 40, *[1] * 40]).sum() == 2 * 38, "one text of each"
    assert held(digests(10), 1e-9, range(10)).sum() == 2, "of voices with one text each"


@pytest.mark.parametrize("second_texts", [0, 1, 300, 700, 2_000])
def test_a_share_is_held_out_of_many_voices_with_one_text_each(second_texts):
    texts = digests(2_000 + second_texts)
    share = held(texts, 0.05, [*range(2_000), *range(second_texts)]).mean()
    assert 0.02 < share < 0.06


@pytest.mark.parametrize(("flags", "golden"), CASES["golden"])
def test_plans_do_not_depend_on_the_order_of_the_clips(flags, golden):
    """Of three corpora, without and with what an earlier build decided; a plain loop over the clips gave the same."""
    settings, draw, shown = load_config("normal", flags=flags), random.Random(1), list[object]()
    clips = [random_row(i, draw) for i in range(3000)]
    for order in (clips, clips[::-1]):
        columns, previous, plans = plan_columns(table_of(order), settings.split.seed), None, list[object]()
        for _ in range(2):
            plan = plan_cache(columns, settings, previous)
            plans.append(([(s.tokens, s.frames) for s in plan.shapes], [*plan.speakers], members(plan, order)))
            counts = {(s.id.split, s.id.bucket, s.id.corpus): s.shards + s.shards // 3 for s in plan.shards}
            previous = PreviousPlan(shapes=plan.shapes, speakers=["old", *reversed(plan.speakers)], shard_counts=counts)
        shown.append(json.dumps(plans))
    assert shown[0] == shown[1]
    assert hashlib.sha256(shown[0].encode()).hexdigest()[:16] == golden


def random_row(i: int, draw: random.Random) -> IndexRow:
    frames = draw.randint(60, 900)
    corpus = draw.choice(["", "b", "a"])
    speaker, text = draw.choice(["", "zoe", "ann"]) if corpus else "", f"text {draw.randrange(1500)}"
    clip = Clip(f"{corpus}-{i}", speaker, text, "x.wav", corpus=corpus)
    if draw.random() < 0.02:
        return IndexRow(clip=clip).rejected("missing audio")
    return IndexRow(clip=clip, token_length=draw.randint(5, 60), mel_length=frames)


def test_each_corpus_holds_out_clips_of_its_own():
    named = [Clip(f"{name}{i}", "", f"{name} {i}", "x.wav", corpus=name) for name in "ab" for i in range(2)]
    clips = [IndexRow(clip=clip, token_length=20, mel_length=100) for clip in named]
    plan = plan_clips(clips, load_config("tiny", flags={"split.validation_fraction": 1e-9}), None)
    assert [shard.id.corpus for shard in plan.shards if shard.id.split == "validation"] == ["a", "b"]


def test_padded_lengths_are_kept_unless_they_waste_much_or_are_too_short():
    clips, settings = rows(300), config(buckets=2)
    best = plan_clips(clips, settings, None).shapes
    for more, kept in ((8, True), (1500, False), (-8, False)):
        shapes = [best[0], BucketShape(tokens=best[1].tokens, frames=best[1].frames + more)]
        previous = PreviousPlan(shapes=shapes, speakers=[], shard_counts={})
        assert plan_clips(clips, settings, previous).shapes == (shapes if kept else best)


@pytest.mark.parametrize(("tokens", "frames", "reason", "detail"), CASES["lengths"])
def test_lengths_are_judged(tokens, frames, reason, detail):
    filtered = filter_by_lengths(row("a", tokens, frames), config(max_text_length=50, max_mel_frames=300))
    assert (filtered.reason, filtered.detail) == (reason, detail)
