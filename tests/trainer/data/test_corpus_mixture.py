"""Several corpora in a bucket: how often each is drawn, in which order, and from where reading continues."""

from collections import Counter

import pytest

from xtts.shared.config_files import load_config
from xtts.trainer.data.batch_sizes import batch_sizes, for_corpus
from xtts.trainer.data.training_bucket import bucket_order
from xtts.trainer.models.kind import kind_of


def order_of(spec, **options):
    return bucket_order(spec, 0, **{"seed": 5, "memory_mb": 1, **options})


def corpus_of(spec, places):
    names = {place: name for name, own in spec.buckets[0].corpora().items() for place in own}
    return [names[shard] for shard, _ in places]


MIXTURES = {
    "as they are": ({"a": (3, 4), "b": (6,)}, {}),
    "one half as often": ({"a": (3, 4), "b": (6, 3)}, {"b": 0.5}),
    "one twice as often": ({"a": (3, 4), "b": (6,)}, {"b": 2.0}),
    "odd weights of three": ({"": (5,), "a": (3, 4), "b": (6, 2)}, {"": 1.7, "a": 0.3}),
}


@pytest.fixture(params=MIXTURES.values(), ids=MIXTURES)
def spec(made, request):
    corpora, weights = request.param
    return made(corpora, **weights)


def test_weights_decide_the_clips_of_an_epoch_without_repeats(spec):
    order, bucket = order_of(spec), spec.buckets[0]
    clips = {name: sum(bucket.train[i].records for i in places) for name, places in bucket.corpora().items()}
    wanted = {name: round(spec.weights.get(name, 1) * count) for name, count in clips.items()}
    assert order.clips == spec.epoch_clips(bucket) == sum(wanted.values())
    drawn = order.records_from(0, 6 * order.clips)
    corpora = corpus_of(spec, drawn)
    for epoch in range(6):
        assert Counter(corpora[epoch * order.clips :][: order.clips]) == wanted
    for name, count in clips.items():
        own = [place for place, corpus in zip(drawn, corpora, strict=True) if corpus == name]
        for start in range(0, len(own) - count + 1, count):
            assert len(set(own[start : start + count])) == count


def test_a_position_continues_the_mixture_wherever_it_is_cut(spec):
    order = order_of(spec)
    whole = order.records_from(0, 3 * order.clips)
    for cut in (1, order.clips // 2, order.clips - 1, order.clips, order.clips + 3):
        assert order.records_from(cut, order.clips) == whole[cut : cut + order.clips]


@pytest.mark.parametrize("mixture", ["one half as often", "odd weights of three"])
def test_the_stream_reads_what_records_from_names(made, assert_stream_reads_records, mixture):
    corpora, weights = MIXTURES[mixture]
    spec = made(corpora, **weights)
    order = order_of(spec)
    assert_stream_reads_records(spec, order, [2 * order.clips + 3])


def test_every_batch_holds_every_corpus_in_its_proportion(made):
    spec = made({"a": (100,) * 6, "b": (50,) * 2}, b=2.0)
    order = order_of(spec)
    assert order.clips == 800
    drawn = corpus_of(spec, order.records_from(0, 2400))
    for start in range(0, 2400, 16):
        assert Counter(drawn[start : start + 16]) == {"a": 12, "b": 4}


def test_the_order_of_a_corpus_does_not_depend_on_the_others(made):
    both, alone = (made(corpora) for corpora in ({"a": (3, 4), "b": (6,)}, {"a": (3, 4)}))
    drawn = order_of(both).records_from(0, 39)
    own = [place for place, corpus in zip(drawn, corpus_of(both, drawn), strict=True) if corpus == "a"]
    assert own == order_of(alone).records_from(0, 21)
    assert own != order_of(alone, seed=6).records_from(0, 21)


def suited(config, spec, *, from_a_model=False):
    return for_corpus(config, spec, kind_of(config).automatic_steps(config)[from_a_model])


def test_max_batch_share_limits_the_batch_size(made):
    spec = made({"a": (100,), "b": (60,)})
    for share, micro, expected in ((1.0, 1, 64), (0.1, 1, 16), (0.1, 3, 15), (0.001, 2, 2), (1.0, 7, 154)):
        flags = {
            "batch_size": {1: 64, 2: 64, 3: 66, 7: 175}[micro],
            "max_batch_share": share,
            "gradient_accumulation_steps": micro,
        }
        config = load_config("tiny", flags={f"training.{name}": value for name, value in flags.items()})
        assert suited(config, spec).training.batch_size == expected


def test_batch_sizes_and_epochs_count_the_clips_that_are_drawn(made):
    config = load_config("tiny", flags={"training.batch_size": 8, "training.epochs": 4})
    for weight, clips in ((1.0, 32), (0.5, 24), (2.0, 48), (0.001, 17)):
        spec = made({"a": (16,), "b": (16,)}, b=weight)
        assert spec.epoch_clips(spec.buckets[0]) == clips
        sizes = batch_sizes(spec, config.training)
        assert sizes == {0: 8}
        assert suited(config, spec).training.steps == 4 * clips // 8


@pytest.mark.parametrize(("size", "clips", "steps", "from_a_model"), [
    ("tiny", 800, 40 * 800 // 8, 12 * 800 // 8), ("tiny", 32, 1500, 600), ("tiny", 16, 1500, 150 * 16 // 8),
    ("vocoder", 2000, 25_000, 8 * 2000 // 8), ("vocoder", 32, 25_000, 750),
])
def test_a_run_from_a_model_is_shorter_than_one_from_nothing(made, size, clips, steps, from_a_model):
    spec = made({"a": (clips // 2,), "b": (clips // 2,)})
    config = load_config(size, flags={"training.batch_size": 8})
    assert suited(config, spec).training.steps == steps
    assert suited(config, spec, from_a_model=True).training.steps == from_a_model
