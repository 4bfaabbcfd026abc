"""What lies outside the clips changes neither losses nor gradients, and every weight has a gradient."""

import numpy as np
import pytest
from four_clips import KEYS, clips, evaluate, moved, small_model

from xtts.trainer.data.batch import Batch
from xtts.trainer.models.acoustic.objective import AcousticObjective


class Case:
    """A model, and the losses and gradients of its clips; one that imitates draws voices."""

    def __init__(self, model, evaluate=evaluate, more=()):
        self.model = model
        self.evaluate = lambda *arguments: evaluate(model, [*arguments, *more])
        self.expected = self.evaluate(*clips())

    def assert_same(self, found, tolerance=1e-5):
        for key in KEYS:
            np.testing.assert_allclose(found[0][key], self.expected[0][key], rtol=tolerance, err_msg=key)
        assert abs(found[1] - self.expected[1]) <= tolerance
        for variable, a, b in zip(self.model.trainable_variables, found[2], self.expected[2], strict=True):
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance, err_msg=variable.path)


SEED = [np.array([5, 6], np.int32)]


@pytest.fixture(scope="module", params=["plain", "voice", "one-rate"])
def case(request, voice_model):
    if request.param == "voice":
        return Case(voice_model, more=SEED)
    changes = {} if request.param == "plain" else {"decoder_levels": ()}
    return Case(moved(small_model(seed=3, **changes)))


def garbage(value, **bucket):
    """The clips, with garbage after their ends."""
    ids, mel, token_length, mel_length, noise, time = clips(**bucket)
    for row, (n, m) in enumerate(zip(token_length, mel_length, strict=True)):
        ids[row, n:], mel[row, m:], noise[row, m:] = 10_000, value, value
    return ids, mel, token_length, mel_length, noise, time


def test_padding_changes_neither_losses_nor_gradients(case):
    case.assert_same(case.evaluate(*garbage(np.nan, tokens=17, frames=56)))
    case.assert_same(case.evaluate(*garbage(1e6)), 1e-7)


def test_every_weight_learns_and_no_gradient_is_nan(case):
    _, loss, gradients = case.expected
    assert np.isfinite(loss)
    for variable, gradient in zip(case.model.trainable_variables, gradients, strict=True):
        assert np.isfinite(gradient).all(), variable.path
        assert np.abs(gradient).max() > 0, variable.path


def test_blank_clips_weigh_nothing(case):
    assert all(case.expected[0][key][2] == 0 for key in KEYS)
    arguments = [np.zeros_like(part) for part in clips()]
    _, loss, gradients = case.evaluate(*arguments)
    assert loss == 0
    assert all((gradient == 0).all() for gradient in gradients)
    batch = Batch(*arguments[:4], np.zeros(4, np.int32), None)
    assert (AcousticObjective(case.model).counts(batch).numpy() == 0).all()


def test_more_tokens_than_frames_stays_finite(compiled_step):
    ids, mel, _, _, noise, time = clips()
    lengths = np.full(4, 10, np.int32), np.array([1, 4, 9, 10], np.int32)
    _, loss, gradients = compiled_step(ids, mel, *lengths, noise, time, *SEED)
    assert np.isfinite(loss)
    assert all(np.isfinite(gradient).all() for gradient in gradients)
