"""How the work of a step is shared, and what is refused before it begins."""

from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf
from four_clips import MEL_LENGTH, clips, small_model
from tables import cases

from xtts.shared.config_files import load_config
from xtts.shared.errors import LockstepError
from xtts.trainer.data.batch import Batch
from xtts.trainer.loop.failures import RunEnded, explained
from xtts.trainer.loop.optimizer import Optimizer
from xtts.trainer.loop.process_group import ALONE, ProcessGroup, check_micro_batches, join_group
from xtts.trainer.loop.rendezvous import Cluster
from xtts.trainer.loop.train_step import StepFunctions
from xtts.trainer.models.acoustic.objective import ACOUSTIC, AcousticObjective


def training(*assignments):
    return load_config("tiny", assignments=[*assignments]).training


@pytest.mark.parametrize(("parts", "devices", "nearest"), [(1, 2, 2), (8, 3, 9)])
def test_devices_that_cannot_share_the_micro_batches_are_refused(parts, devices, nearest):
    chosen = training(f"training.gradient_accumulation_steps={parts}", f"training.batch_size={parts}")
    with pytest.raises(LockstepError, match=f"{parts}, which {devices} devices cannot .*set it to {nearest};"):
        check_micro_batches(chosen, devices)
    check_micro_batches(chosen, parts)
    check_micro_batches(chosen, 1)


@pytest.mark.parametrize(("visible", "strategy", "parts", "found"), [
    (["GPU:0", "GPU:1"], "auto", 2, 2), (["GPU:0", "GPU:1"], "single", 2, 0), (["GPU:0", "GPU:1"], "auto", 1, 0),
])
def test_auto_takes_all_gpus_that_can_share_the_micro_batches(monkeypatch, capsys, visible, strategy, parts, found):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    assert join_group(training()) is ALONE
    with pytest.raises(LockstepError, match=r"mirrored, but there is one device \(.*CPU:0\)"):
        join_group(training("training.strategy=mirrored"))
    with pytest.raises(LockstepError, match=r"training.runtime: jax, which trains on one device, expected tensorflow"):
        join_group(training("training.strategy=mirrored", "training.runtime=jax"))
    named = {"GPU": [SimpleNamespace(name=name) for name in visible], "CPU": [SimpleNamespace(name="CPU:0")]}
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda kind: named[kind])
    taken = []
    monkeypatch.setattr(
        tf.distribute, "MirroredStrategy",
        lambda names: taken.extend(names) or SimpleNamespace(num_replicas_in_sync=len(names)),
    )
    chosen = training(f"training.strategy={strategy}", f"training.gradient_accumulation_steps={parts}")
    assert join_group(chosen).size == max(found, 1)
    assert taken == visible[:found]
    advice = "to use all: --set training.gradient_accumulation_steps=2\n"
    assert capsys.readouterr().out.endswith(advice) == (parts == 1)


def test_devices_add_up_to_the_whole_batch_of_which_a_clip_is_blank():
    """One device has nothing else. Where an average update is half as large, a frame weighs twice as much."""
    model, step, devices = small_model(), tf.Variable(3, dtype=tf.int64), len(MEL_LENGTH)
    chosen = training(f"training.gradient_accumulation_steps={devices}", f"training.batch_size={devices}")
    batch = Batch(*map(tf.constant, (*clips()[:4], *np.zeros([2, devices], np.int32))))
    objective = AcousticObjective(model)
    about = objective, Optimizer(objective, chosen), chosen, step
    losses, gradient = StepFunctions(*about, typical=(80.0, 20.0)).accumulate(batch)
    functions = [StepFunctions(*about, typical=(40.0, 10.0), replica=i, replicas=devices) for i in range(devices)]
    shares = [Batch(*rows) for rows in zip(*(tf.split(part, devices) for part in batch), strict=True)]
    counts = sum(one.counts(share) for one, share in zip(functions, shares, strict=True))
    assert counts[ACOUSTIC.losses.index("prior")] == sum(MEL_LENGTH) * model.mel_channels
    parts = [one.accumulate(share, counts) for one, share in zip(functions, shares, strict=True)]
    np.testing.assert_allclose(sum(own for own, _ in parts), losses, rtol=1e-5)
    np.testing.assert_allclose(sum(own for _, own in parts), 2.0 * gradient, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize(("error", "message", "found", "fix"), cases(__file__)["failures"])
def test_after_any_failure_of_a_runtime_the_last_whole_step_is_saved(error, message, found, fix):
    """`RunEnded` reports it, whatever the message of TensorFlow or JAX is."""
    if error == "jax":
        failure = pytest.importorskip("jax").errors.JaxRuntimeError(message)
    else:
        failure = getattr(tf.errors, error)(None, None, message)
    resume = "xtts-train --resume runs/a"
    with pytest.raises(RunEnded) as raised, explained("steps after 3", "look at the data", resume=resume):
        raise failure
    assert (raised.value.found, raised.value.fix) == (found, fix)


class OtherWorker(ProcessGroup):
    """The second of two workers; the first has other facts, and ends as soon as it knows."""

    sums = 0

    def sum_of_processes(self, vector):
        type(self).sums += 1
        if self.sums == 2:
            raise RunEnded("all workers", found="worker 0 has ended")
        return np.concatenate([np.ones(len(vector) // 2, np.float32), vector[len(vector) // 2 :]])


def test_workers_that_differ_say_so_though_another_ended_first():
    """None ends before all have read why; who is met by the end of another knows already."""
    group = OtherWorker(cluster=Cluster(addresses=("a:1", "b:2"), index=1))
    with pytest.raises(LockstepError, match="worker 1: its cache differs from worker 0's") as raised:
        group.check_same({"cache": "x"}, fix="start all with the same")
    assert (raised.value.exit_code, group.sums) == (2, 2)
