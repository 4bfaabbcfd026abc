"""The acoustic model: static shapes, determinism, learning, generation."""

import numpy as np
import pytest
import tensorflow as tf
from four_clips import CHANNELS, EULER, clips, evaluate, losses, moved, small_model
from graph_walk import DYNAMIC_OPS, PYTHON_OPS, unknown_shapes, walk

from xtts.trainer.models.acoustic.acoustic_model import duration_deviance
from xtts.trainer.models.acoustic.networks import Conditioning, postfilter


def test_duration_loss_is_least_at_the_mean():
    durations, valid = tf.constant([[2, 9, 4, 50]]), tf.constant([[[True], [True], [True], [False]]])
    candidates = np.linspace(1.0, 10.0, 91)
    deviance = [
        float(duration_deviance(tf.fill([1, 4], tf.math.log(np.float32(frames))), durations, valid)[0])
        for frames in candidates
    ]
    assert candidates[np.argmin(deviance)] == pytest.approx(5.0)
    exact = duration_deviance(tf.math.log([[2.0, 9.0, 4.0, 1.0]]), durations, valid)
    assert exact.numpy() == pytest.approx(0, abs=1e-6)


def test_the_locked_loss_has_no_dynamic_shape(compiled_step):
    graph = compiled_step.get_concrete_function().graph
    kinds = [op.type for op in walk(graph)]
    assert len(kinds) > 500
    assert sum(kind in ("While", "StatelessWhile") for kind in kinds) == 1
    assert not set(kinds) & {*PYTHON_OPS, *DYNAMIC_OPS, "BooleanMask"}
    assert not unknown_shapes(graph)


def test_generates_what_the_speaker_and_the_language_say():
    """By their numbers, as synthesis gives them."""
    model = moved(small_model(speakers=3, languages=2, seed=9))
    ids, _, token_length, *_ = clips()

    def speak(speaker, language, speed=1.0):
        given = {"noise": tf.random.stateless_normal([4, 64, CHANNELS], [1, 2]), "schedule": EULER}
        conditioning = Conditioning(speaker=tf.fill([4], speaker), language=tf.fill([4], language))
        found = model.generate(ids, token_length, temperature=0.7, speed=speed, conditioning=conditioning, **given)
        return [part.numpy() for part in found]

    mel, mel_length, durations = speak(0, 0)
    assert mel.shape == (4, 64, CHANNELS)
    assert np.isfinite(mel).all()
    assert (durations.sum(axis=1) == mel_length).all()
    assert ((durations > 0) == (np.arange(10) < token_length[:, None])).all()
    for row in range(4):
        assert (mel[row, mel_length[row] :] == np.float32(model.silence)).all()
    for other in ((1, 0), (0, 1)):
        assert np.abs(speak(*other)[0] - mel).max() > 1e-3
    assert speak(0, 0, speed=0.05)[1][0] > 64, "a clip longer than its shape reports its full length"
    model.silence = float(np.median(mel[0, : mel_length[0]]))
    assert speak(0, 0)[0].min() == np.float32(model.silence), "nothing is more silent than silence"


def test_what_is_spoken_has_passed_the_post_filter():
    """A schedule that moves nothing speaks the noise."""
    model = small_model()
    ids, _, token_length, *_ = clips()
    noise = np.random.default_rng(0).standard_normal([4, 64, CHANNELS]).astype(np.float32)
    mel, mel_length, _ = model.generate(
        ids, token_length, noise=noise, schedule=tf.zeros([1, 3]), temperature=1.0, speed=1.0
    )
    expected = np.maximum((noise * model.mel_deviation + model.mel_mean) @ postfilter(CHANNELS), model.silence)
    for row, length in enumerate(mel_length.numpy()):
        np.testing.assert_allclose(mel[row, :length], expected[row, :length], atol=1e-4)


def test_bfloat16_is_close_to_float32():
    mixed = small_model(dtype_policy="mixed_bfloat16")
    assert {variable.dtype for variable in mixed.trainable_variables} == {"float32"}
    _, loss, gradients = evaluate(mixed, clips())
    assert loss.dtype == np.float32
    assert all(np.isfinite(gradient).all() for gradient in gradients)
    np.testing.assert_allclose(loss, losses(small_model(), *clips())[1], rtol=0.05)
