"""The best validation of a run."""

from xtts.trainer.models.acoustic.objective import ACOUSTIC
from xtts.trainer.run.hosted_run import Best


def test_the_flow_alone_tells_the_best_checkpoint_of_a_voice():
    best, validations = Best(), [(0.30, 0.40), (0.28, 0.45), (0.29, 0.35)]
    for step, (flow, duration) in enumerate(validations):
        best.note(step, ACOUSTIC.score({"prior": 0.1, "flow": flow, "duration": duration}))
    assert (best.step, best.loss, best.since) == (1, 0.28, 1)
