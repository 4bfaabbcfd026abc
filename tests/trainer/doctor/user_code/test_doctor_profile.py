"""The profile of a small compiled loop, and the sums over spans that it rests on."""

import io

import pytest
import tensorflow as tf
from rich.console import Console
from tensorflow.tsl.profiler.protobuf import xplane_pb2

from xtts.shared.errors import LockstepError
from xtts.trainer.doctor.page import print_sections
from xtts.trainer.doctor.user_code import profile
from xtts.trainer.doctor.user_code.profile import is_xla_op, merged, profile_call, report_of, summarise, top_ops


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
    return profile_call(lambda: 0.0 * float(loop(tf.constant(6))) + 1e-6, tmp_path_factory.mktemp("profile"))


def test_a_trace_for_tensorboard_and_its_sums(profiled):
    assert [path.suffix for path in profiled.folder.glob("*.xplane.pb")] == [".pb"]
    assert profiled.folder.parts[-3:-1] == ("plugins", "profile")
    assert 0 < profiled.busy <= profiled.wall
    assert any(count == 6 for _, _, count in profiled.ops)
    assert sum(seconds for _, seconds, _ in profiled.ops) <= 1.01 * profiled.busy * 16  # threads work side by side
    facts = {fact.name: fact.value for fact in report_of(profiled, 6).sections[0].facts}
    assert facts["device busy"] == profiled.busy / profiled.wall
    assert facts["input wait"] == 1e-6 / profiled.wall


def traced(folder, *planes):
    """A trace of (plane, line, [(event, start, seconds)]) as the profiler writes them."""
    space = xplane_pb2.XSpace()
    for name, line_name, events in planes:
        plane = space.planes.add(name=name)
        line = plane.lines.add(name=line_name)
        for number, (event, start, seconds) in enumerate(events, 1):
            plane.event_metadata[number].name = event
            line.events.add(metadata_id=number, offset_ps=int(start * 1e12), duration_ps=int(seconds * 1e12))
    file = folder / "machine.xplane.pb"
    file.write_bytes(space.SerializeToString())
    return file


def test_on_a_gpu_streams_count_and_copies_are_not_work(tmp_path, monkeypatch):
    monkeypatch.setattr(profile, "accelerator", lambda: "/GPU:0")
    kernel = "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x64_8x5_nn_align1>(cutlass::Params) [clone .kd]"
    file = traced(
        tmp_path,
        ("/host:CPU", "python", [("CpuExecutable::ExecuteAsyncOnStream", 0, 9)]),
        ("/device:GPU:0", "Stream #7(Compute)", [(kernel, 1, 2), ("loop_fusion_3", 4, 1)]),
        ("/device:GPU:0", "Stream #8(MemcpyH2D)", [("MemcpyH2D", 5, 4)]),
        ("/device:GPU:0", "XLA Ops", [("fusion.3", 1, 8)]),
    )
    found = summarise(file, 10.0, 0.5)
    assert (found.busy, found.waiting) == (3.0, 0.5)
    assert found.ops == [("MemcpyH2D", 4.0, 1), (kernel, 2.0, 1), ("loop_fusion", 1.0, 1)]
    screen = Console(record=True, file=io.StringIO(), width=100)
    print_sections(report_of(found, 4), screen)
    (line,) = [line for line in screen.export_text().splitlines() if "cutlass" in line]
    assert line.rstrip().endswith("66.7%     2000.0 ms        1 times")
    assert len(line.rstrip()) < 100


def test_a_gpu_that_may_not_be_profiled_is_said_to_be(tmp_path, monkeypatch):
    file = traced(tmp_path, ("/host:CPU", "python", [("CpuExecutable::ExecuteAsyncOnStream", 0, 9)]))
    assert summarise(file, 10.0, 0.0).busy == 9.0
    monkeypatch.setattr(profile, "accelerator", lambda: "/GPU:0")
    with pytest.raises(LockstepError, match=r"no compiled step in the trace.*\n?.*NVreg_RestrictProfilingToAdminUsers"):
        summarise(file, 10.0, 0.0)


def test_a_folder_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "out").write_text("")
    with pytest.raises(LockstepError, match="out: cannot be profiled into"):
        profile_call(lambda: 0.0, tmp_path / "out")


def test_spans_that_overlap_count_once():
    assert merged([(5, 9), (0, 3), (2, 4), (9, 10)]) == [(0, 4), (5, 10)]


def test_the_time_of_an_op_is_less_that_of_those_inside_it():
    second = 10**12
    spans = [("while.3", 0, 10), ("fusion.1", 1, 4), ("fusion.22", 5, 6), ("copy", 11, 12)]
    line = [(name, (start * second, end * second)) for name, start, end in spans]
    assert top_ops([line]) == [("while", 6.0, 1), ("fusion", 4.0, 2), ("copy", 1.0, 1)]


def test_xla_names_are_distinguished_from_tensorflow_names():
    assert is_xla_op("wrapped_reduce-window.2")
    assert not any(map(is_xla_op, ("while/body/mul:Mul", "ThunkExecutor::Execute", "IteratorGetNext")))
