"""The profile of a small compiled loop, and the sums over spans that it rests on."""

import pytest
import tensorflow as tf

from xtts.shared.errors import LockstepError
from xtts.trainer.doctor.profile import is_xla_op, merged, profile_call, report_of, top_ops


@pytest.fixture(scope="module")
def profiled(tmp_path_factory):
    """The profile of six compiled products whose batches come through an iterator."""

    @tf.function(jit_compile=True, autograph=False)
    def step(x):
        return tf.reduce_sum(tf.tanh(x @ x))

    batches = iter(tf.data.Dataset.from_tensors(tf.ones([400, 400])).repeat().prefetch(1))

    @tf.function
    def loop(count):
        total = 0.0
        for _ in tf.range(count):
            total += step(next(batches))
        return total

    loop(tf.constant(1))
    return profile_call(lambda: loop(tf.constant(6)).numpy(), tmp_path_factory.mktemp("profile"))


def test_a_trace_for_tensorboard_and_its_sums(profiled):
    assert [path.suffix for path in profiled.folder.glob("*.xplane.pb")] == [".pb"]
    assert profiled.folder.parts[-3:-1] == ("plugins", "profile")
    assert 0 < profiled.busy <= profiled.wall
    assert 0 < profiled.waiting < profiled.wall
    assert any(count == 6 for _, _, count in profiled.ops)
    assert sum(seconds for _, seconds, _ in profiled.ops) <= 1.01 * profiled.busy * 16  # threads work side by side
    facts = {fact.name: fact.value for fact in report_of(profiled, 6).sections[0].facts}
    assert facts["device busy"] == profiled.busy / profiled.wall
    assert facts["input wait"] == profiled.waiting / profiled.wall


def test_a_folder_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "out").write_text("")
    with pytest.raises(LockstepError, match="out: cannot be profiled into"):
        profile_call(lambda: None, tmp_path / "out")


def test_spans_that_overlap_count_once():
    assert merged([(5, 9), (0, 3), (2, 4), (9, 10)]) == [(0, 4), (5, 10)]


def test_the_time_of_an_op_is_less_that_of_those_inside_it():
    second = 10**12
    spans = [("while.3", 0, 10), ("fusion.1", 1, 4), ("fusion.22", 5, 6), ("copy", 11, 12)]
    line = [(name, (start * second, end * second)) for name, start, end in spans]
    assert top_ops([line]) == [("while", 6.0, 1), ("fusion", 4.0, 2), ("copy", 1.0, 1)]


def test_names_of_xla_and_of_tensorflow_are_told_apart():
    assert is_xla_op("wrapped_reduce-window.2")
    assert not any(map(is_xla_op, ("while/body/mul:Mul", "ThunkExecutor::Execute", "IteratorGetNext")))
