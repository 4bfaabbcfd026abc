"""Fixed validation sentences at an interval: their audio and pictures, and no effect on training."""

import re
from dataclasses import fields

import numpy as np
import pytest
import tensorflow as tf
from tensorboard.backend.event_processing.event_accumulator import AUDIO, IMAGES, TENSORS, EventAccumulator

from xtts.shared.cache.cache_spec import load_spec
from xtts.trainer.evaluation.figures import Figures
from xtts.trainer.models.acoustic.samples import Sample, SpokenSamples, fixed_sentences


def shown(folder):
    """Kind to tag to the steps at which TensorBoard has it, and what was shown there."""
    events = EventAccumulator(str(folder / "tensorboard"), size_guidance={AUDIO: 0, IMAGES: 0, TENSORS: 0}).Reload()
    kinds = {}
    for tag in events.Tags()["tensors"]:
        kind = events.SummaryMetadata(tag).plugin_data.plugin_name
        kinds.setdefault(kind, {})[tag] = {
            event.step: tf.make_ndarray(event.tensor_proto) for event in events.Tensors(tag)
        }
    return kinds


def test_tensorboard_shows_and_plays_the_sentences(finished_run, one_shape_cache):
    folder, screen = finished_run
    _, (first, *_) = fixed_sentences(one_shape_cache, load_spec(one_shape_cache), 4)
    kinds = shown(folder)
    assert {tag: list(by_step) for tag, by_step in kinds["images"].items()} == {
        f"{picture}/{first.clip_id}": [8, 12] for picture in ("mel", "alignment")
    }
    assert {tag: list(by_step) for tag, by_step in kinds["audio"].items()} == {
        f"recording/{first.clip_id}": [0], f"speech/{first.clip_id}": [8, 12],
    }
    for by_step in kinds["images"].values():
        for width, height, png in by_step.values():
            assert tf.io.decode_png(png).shape == (int(height), int(width), 3)
    wav, _ = kinds["audio"][f"recording/{first.clip_id}"][0][0]
    samples, rate = tf.audio.decode_wav(wav)
    assert rate == 22_050
    assert len(samples) == 256 * len(first.mel)
    assert np.abs(samples).max() > 0.05
    evaluated = {tag for tag in kinds["scalars"] if tag.startswith("evaluation/")}
    names = {field.name for field in fields(Figures)} - {"semitones_of_questions"}  # its corpus has none
    assert evaluated == {f"evaluation/{name}" for name in names}
    assert re.search(r"samples at step 12: \d sentences: relative MCD \d\.\d+ Fréchet ", " ".join(screen.split()))


@pytest.fixture
def make_samples(make_plan, tmp_path):
    """`make_samples("training.a=b", spec=...)`: the samples of an untrained model; nothing is compiled."""

    def make(*assignments, spec=None):
        plan = make_plan(tmp_path / "run", "training.samples_every=4", *assignments)
        network = plan.kind.objective(plan.config, plan.spec, plan.cache).model
        return SpokenSamples(network, plan.cache, spec or plan.spec, plan.config.training)

    return make


def test_speech_that_is_not_finite_is_noticed(make_samples):
    samples = make_samples("training.sample_sentences=2")
    broken = [
        Sample(clip=clip, mel=np.full_like(clip.mel, np.nan), frames=9, durations=None) for clip in samples.sentences
    ]
    assert not samples.finite(broken)


def test_one_sentence_is_spoken_without_figures(make_samples):
    samples = make_samples("training.sample_sentences=1")
    assert (len(samples.sentences), samples.shown) == (1, 1)
    assert samples.measure([]) == ({}, "audio and pictures are in TensorBoard")


def test_no_samples_without_validation_clips(make_samples, tiny_cache):
    spec = load_spec(tiny_cache)
    buckets = [bucket.model_copy(update={"validation": []}) for bucket in spec.buckets]
    assert make_samples(spec=spec.model_copy(update={"buckets": buckets})).empty
    assert not make_samples().empty


def test_sentences_come_from_the_bucket_that_holds_most(tiny_cache):
    spec = load_spec(tiny_cache)
    number, clips = fixed_sentences(tiny_cache, spec, 8)
    held_out = [bucket.clips("validation") for bucket in spec.buckets]
    assert held_out[number] == max(held_out) == len(clips)
    assert [clip.clip_id for clip in clips] == sorted(clip.clip_id for clip in clips)
    assert [clip.clip_id for clip in fixed_sentences(tiny_cache, spec, 1)[1]] == [clips[0].clip_id]
