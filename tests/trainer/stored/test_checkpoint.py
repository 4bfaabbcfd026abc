import re
import shutil
from contextlib import nullcontext

import numpy as np
import pytest

from xtts.shared.cache.cache_spec import load_spec
from xtts.shared.config import TrainingConfig
from xtts.shared.errors import LockstepError
from xtts.trainer.stored.checkpoint import (
    before_decay,
    check_resumable,
    check_weights,
    find_checkpoint,
    identity_of,
    list_checkpoints,
    load_arrays,
    prune_checkpoints,
    read_meta,
    save_checkpoint,
    schedule_of,
    set_aside_newer,
)

IDENTITY = {"settings": {"model.text_width": 16, "training.seed": 0}, "cache": "a" * 64, "cache_fingerprint": "f" * 64}


def save(folder, step, **arrays):
    arrays = arrays or {"weights/a/kernel": np.arange(6.0).reshape(2, 3), "step": np.int64(step)}
    return save_checkpoint(folder, arrays, step=step, identity=IDENTITY, progress={"best": 1.5})


def test_the_newest_is_found_by_number_in_a_run_folder_and_by_name(tmp_path):
    for step in (5, 90, 100):
        save(tmp_path / "checkpoints", step)
    assert find_checkpoint(tmp_path).name == "step-100"
    assert find_checkpoint(tmp_path / "checkpoints").name == "step-100"
    assert find_checkpoint(tmp_path / "checkpoints" / "step-5").name == "step-5"


def test_a_damaged_newest_checkpoint_is_passed_over_aloud(tmp_path, capsys):
    for step in (5, 90):
        save(tmp_path / "checkpoints", step)
    (damaged := tmp_path / "checkpoints" / "step-90" / "checkpoint.json").write_text("{")
    assert find_checkpoint(tmp_path).name == "step-5"
    assert f"warning: {damaged}: cannot be read" in (said := capsys.readouterr().err)
    assert said.endswith("; using an older checkpoint\n")
    assert find_checkpoint(damaged.parent) == damaged.parent, "it was asked for"


def test_only_the_newest_are_kept(tmp_path):
    for step in (1, 2, 3, 4):
        save(tmp_path, step)
    prune_checkpoints(tmp_path, 2, beside={1})
    assert [path.name for path in list_checkpoints(tmp_path)] == ["step-1", "step-3", "step-4"]
    prune_checkpoints(tmp_path, 2)
    assert [path.name for path in list_checkpoints(tmp_path)] == ["step-3", "step-4"]


def test_a_longer_run_goes_on_before_the_decay_of_the_shorter_one(tmp_path):
    def training(steps):
        return TrainingConfig(steps=steps, warmup_fraction=0.0, decay_fraction=0.2)

    def saved(step, steps):
        progress = {"schedule": schedule_of(training(steps))}
        return save_checkpoint(tmp_path, {"step": np.int64(step)}, step=step, identity=IDENTITY, progress=progress)

    for step in (60, 80, 100):
        last = saved(step, 100)
    assert before_decay(last, training(100)) == last
    assert before_decay(last, training(200)).name == "step-80"
    assert before_decay(tmp_path / "step-60", training(200)).name == "step-60"
    assert before_decay(last, training(90)).name == "step-60"  # whose own decay begins at 72
    longer = saved(160, 200)
    assert before_decay(longer, training(300)) == longer
    shutil.rmtree(tmp_path / "step-60")
    shutil.rmtree(tmp_path / "step-80")
    assert before_decay(last, training(200)) is None


def test_what_a_killed_save_left_is_no_checkpoint_and_is_swept_up(tmp_path):
    save(tmp_path, 1)
    partial = tmp_path / ".step-2.partial"
    partial.mkdir()
    (partial / "state.npz").write_bytes(b"half")
    (tmp_path / "step-3").mkdir()
    (tmp_path / "step-3" / "state.npz").write_bytes(b"no description")
    assert [path.name for path in list_checkpoints(tmp_path)] == ["step-1"]
    assert find_checkpoint(tmp_path).name == "step-1"
    prune_checkpoints(tmp_path, 3)
    assert not partial.exists()


def test_a_kill_while_an_old_one_is_removed_leaves_no_half_of_it(tmp_path, monkeypatch):
    def killed(path):
        (path / "state.npz").unlink()
        raise KeyboardInterrupt

    for step in (1, 2):
        save(tmp_path, step)
    monkeypatch.setattr("xtts.trainer.stored.checkpoint.shutil.rmtree", killed)
    with pytest.raises(KeyboardInterrupt):
        prune_checkpoints(tmp_path, 1)
    assert [path.name for path in list_checkpoints(tmp_path)] == ["step-2"]


@pytest.mark.parametrize("at", [0, 100, -1])
def test_a_flipped_bit_is_noticed(tmp_path, at):
    path = save(tmp_path, 1)
    data = bytearray((path / "state.npz").read_bytes())
    data[at] ^= 4
    (path / "state.npz").write_bytes(data)
    with pytest.raises(LockstepError, match=r"state.npz: damaged \(digest differs\); resume an older one"):
        load_arrays(path)


def test_nothing_is_unpickled(tmp_path):
    path = save(tmp_path, 1, bad=np.array([{"a": 1}], dtype=object))
    with pytest.raises(LockstepError, match=r"cannot be read .*allow_pickle=False"):
        load_arrays(path)


@pytest.mark.parametrize(("change", "message"), [
    ({"settings": {**IDENTITY["settings"], "model.text_width": 32}}, "made with model.text_width = 16, expected 32"),
    ({"settings": {**IDENTITY["settings"], "training.seed": 1}}, "made with training.seed = 0, expected 1"),
    ({"cache": "b" * 64}, r"another cache \(different clips under the same settings\)"),
    ({"cache": "b" * 64, "cache_fingerprint": "e" * 64}, r"another cache \(different feature settings\)"),
])
def test_another_model_order_or_cache_is_refused_by_name(tmp_path, change, message):
    path = save(tmp_path, 1)
    check_resumable(path, IDENTITY)
    with pytest.raises(LockstepError, match=f"{message}.*another --out"):
        check_resumable(path, {**IDENTITY, **change})


def test_weights_serve_a_model_that_drops_more(tmp_path, make_plan):
    plans = [make_plan(tmp_path / "run", *more) for more in ((), ("model.dropout=0.2",))]
    old, new = (identity_of(plan.config, plan.spec) for plan in plans)
    path = save_checkpoint(tmp_path, {"step": np.int64(1)}, step=1, identity=old, progress={})
    check_weights(path, read_meta(path)["settings"], new)
    with pytest.raises(LockstepError, match="made with " + re.escape("model.dropout")):
        check_resumable(path, new)


def test_weights_learn_to_imitate_but_never_forget_it(tmp_path, make_plan):
    plans = [make_plan(tmp_path / "run", f"model.voice_from={source}") for source in ("table", "recording")]
    table, recording = (identity_of(plan.config, plan.spec) for plan in plans)
    check_weights(tmp_path, table["settings"], recording)
    with pytest.raises(LockstepError, match=r"weights of model.voice_from = 'recording', expected 'table'"):
        check_weights(tmp_path, recording["settings"], table)


def test_only_a_model_of_recorded_voices_needs_those_of_its_cache(tmp_path, make_plan, one_shape_cache):
    spec = load_spec(one_shape_cache)
    others = spec.model_copy(update={"voices": spec.voices.model_copy(update={"sha256": "0" * 64})})
    for source, refused in (("table", False), ("recording", True)):
        plan = make_plan(tmp_path / "run", f"model.voice_from={source}", cache=one_shape_cache)
        old, new = (identity_of(plan.config, each) for each in (spec, others))
        path = save_checkpoint(tmp_path / source, {"step": np.int64(1)}, step=1, identity=old, progress={})
        with pytest.raises(LockstepError, match=r"made with cache\.voices") if refused else nullcontext():
            check_resumable(path, new)


def test_going_back_sets_newer_checkpoints_aside(tmp_path):
    for step in (1, 2, 3):
        save(tmp_path, step)
    assert [path.name for path in set_aside_newer(tmp_path, 1)] == ["step-2", "step-3"]
    assert find_checkpoint(tmp_path).name == "step-1"
    assert (tmp_path / "superseded" / "step-3" / "state.npz").is_file()
