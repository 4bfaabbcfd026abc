"""`from xtts.trainer import train`: a Python program's arguments and results."""

import pytest

import xtts.trainer
from xtts.shared.errors import LockstepError
from xtts.trainer import train
from xtts.trainer.run import finish as finish_module
from xtts.trainer.run import trainer as trainer_module

STEPS = {"training.steps": 20}


def test_a_complete_run_is_unchanged(finished_run, monkeypatch):
    monkeypatch.setattr(trainer_module, "train", lambda *_, **__: pytest.fail("trained again"))
    folder, _ = finished_run
    for result in (train(resume=folder), train(out=str(folder), resume=True)):
        assert result.run.samefile(folder)
        assert result.checkpoint.name == "step-12"
        assert (result.step, result.complete) == (12, True)


@pytest.mark.parametrize("quiet", [True, False])
def test_a_run_goes_on_with_its_own_configuration_and_the_settings_given(finished_run, monkeypatch, capsys, quiet):
    plans = []

    def stop_at_once(plan, console, hooks):
        plans.append((plan, console.quiet))
        return False

    monkeypatch.setattr(trainer_module, "train", stop_at_once)
    result = train(resume=finished_run[0], settings=STEPS | {"training.batch_size": 1000}, quiet=quiet)
    assert not result.complete
    assert ("clips a step instead of 1000" in capsys.readouterr().out) is not quiet
    ((plan, silent),) = plans
    assert silent is quiet
    assert plan.config.training.steps == 20
    assert plan.config.model.text_width == 16  # of the run, not of the size "tiny"


def test_a_complete_run_ends_in_a_voice_and_a_stopped_one_does_not(finished_run, monkeypatch):
    finished = []
    monkeypatch.setattr(
        finish_module, "finish_run", lambda path, console, data=None: finished.append((path, console.quiet))
    )
    for complete in (False, True):
        monkeypatch.setattr(trainer_module, "train", lambda *_, complete=complete, **__: complete)
        assert train(resume=finished_run[0], settings=STEPS, quiet=True).complete is complete
    ((path, quiet),) = finished
    assert path.samefile(finished_run[0])
    assert quiet


def test_errors_are_those_of_the_command(finished_run, tiny_cache, tmp_path):
    with pytest.raises(LockstepError, match="already holds a run; continue it with --resume, or give another --out"):
        train(tiny_cache, out=finished_run[0], settings={"shapes.buckets": 2, "split.validation_fraction": 0.1})
    with pytest.raises(LockstepError, match="no such folder"):
        train(tmp_path / "missing")
    with pytest.raises(AttributeError, match="no attribute 'fit'"):
        xtts.trainer.fit  # noqa: B018
