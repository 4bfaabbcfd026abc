"""`--run`: the doctor reads the losses of a run that has ended."""

import json

import pytest
from click.testing import CliRunner

from xtts.shared.errors import LockstepError
from xtts.trainer.doctor.checks import overfitting
from xtts.trainer.doctor.cli import main
from xtts.trainer.loop.metrics import ACOUSTIC


def write_run(folder, held_out):
    """A run whose training losses fall, with these held-out duration losses every two steps."""
    rows = []
    for number, loss in enumerate(held_out, 1):
        same = dict.fromkeys(ACOUSTIC.losses, 1.0 / number)
        rows += [{"split": "train", "step": 2 * number - 1 + i, **same} for i in range(2)]
        rows.append({"split": "validation", "step": 2 * number, **same, "duration": loss})
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def test_only_a_run_that_overfits_is_a_problem(tmp_path, only, problems):
    result = [*overfitting(write_run(tmp_path, [0.9, 0.6, 0.7, 0.8, 0.9]))]
    problem = only(result)
    assert problem.what == (
        "the held-out duration loss rises (0.600 at step 4, 0.900 at step 10) while the training loss falls"
    )
    assert "xtts-synth --best" in problem.remedy
    assert result[0].text == "5 to step 10"
    assert not problems(overfitting(write_run(tmp_path, [0.9, 0.6, 0.5, 0.4, 0.3])))


def test_what_is_no_run_is_refused(tmp_path):
    with pytest.raises(LockstepError, match=r"--run: .* has no validation, expected a run folder"):
        [*overfitting(tmp_path)]
    done = CliRunner().invoke(main, ["--run", str(tmp_path / "nowhere")])
    assert "Invalid value for '--run': Directory" in done.stderr
