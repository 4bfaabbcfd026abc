"""The best validation; which losses are named as overfitting."""

from xtts.trainer.models.acoustic.objective import ACOUSTIC
from xtts.trainer.run.best_validation import Best, Overfitting, mean_losses


def lines(held_out, trained):
    watch = Overfitting(ACOUSTIC.losses)
    return [
        line
        for step, (one, other) in enumerate(zip(held_out, trained, strict=True))
        for line in watch.note(
            100 * step, {"flow": 1.0 - step / 100, "duration": one}, {"flow": 1.0, "duration": other}
        )
    ]


def test_the_flow_alone_tells_the_best_checkpoint_of_a_voice():
    best, validations = Best(), [(0.30, 0.40), (0.28, 0.45), (0.29, 0.35)]
    for step, (flow, duration) in enumerate(validations):
        best.note(step, ACOUSTIC.score({"prior": 0.1, "flow": flow, "duration": duration}))
    assert (best.step, best.loss, best.since) == (1, 0.28, 1)


def test_a_held_out_loss_that_rises_while_that_of_training_falls_is_named_once():
    assert lines([0.9, 0.6, 0.7, 0.8, 0.9, 1.0], [0.9, 0.6, 0.5, 0.4, 0.3, 0.2]) == [
        "the held-out duration loss rises (0.600 at step 100, 0.900 at step 400) while the training loss falls"
    ]


def test_losses_that_are_no_numbers_say_nothing_and_hide_nothing():
    nan = float("nan")
    assert lines([0.9, 0.60, nan, 0.62, 0.63, 0.7, 0.8], [0.9, 0.6, 0.5, nan, 0.3, 0.2, 0.1])
    rows = [
        {"split": "train", "step": 1, **dict.fromkeys(ACOUSTIC.losses)},
        {"split": "train", "step": 2, **dict.fromkeys(ACOUSTIC.losses, 1.0)},
    ]
    rows.append({"split": "validation", "step": 2, **dict.fromkeys(ACOUSTIC.losses)})
    for losses in (ACOUSTIC.losses, (*ACOUSTIC.losses, "added since")):
        assert not list(Overfitting(losses).replay(rows))
    assert mean_losses(ACOUSTIC.losses, [[1.0] * 4, [nan] * 4, [3.0] * 4])["flow"] == 2.0


def test_noise_is_not_named_nor_a_run_that_diverges():
    assert not lines([0.9, 0.600, 0.605, 0.601, 0.606, 0.603, 0.61], [0.9, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1])
    assert not lines([0.9, 0.60, 0.7, 0.8, 0.9, 1.0, 1.1], [0.9, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1])
