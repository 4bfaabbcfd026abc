"""What a step costs on a device: its matrix products counted, and a GPU's busy time read from a profile."""

import json
import sys

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.compiler.xla import xla_data_pb2


def counted(function, *inputs):
    """{type: operations} of a function compiled for these inputs."""
    from training_parts.products import count_products

    compiled = tf.function(lambda *parts: function(*parts), jit_compile=True, autograph=False)
    return dict(count_products(compiled.experimental_get_compiler_ir(*inputs)(stage="hlo_serialized")))


def test_operations_of_matrix_products_are_counted_by_type():
    a, b = tf.ones([6, 3, 4]), tf.ones([6, 4, 5])
    assert counted(tf.matmul, a, b) == {xla_data_pb2.F32: 2 * 6 * 3 * 4 * 5}
    assert counted(tf.matmul, tf.repeat(a, 2, 0), tf.repeat(b, 2, 0)) == {xla_data_pb2.F32: 2 * 12 * 3 * 4 * 5}
    short = tf.cast(a, tf.bfloat16)
    both = counted(lambda: (tf.matmul(a, b), tf.einsum("bij,bkj->bik", short, short)))
    assert both == {xla_data_pb2.F32: 2 * 6 * 3 * 4 * 5, xla_data_pb2.BF16: 2 * 6 * 3 * 3 * 4}
    assert counted(tf.nn.relu, a) == {}


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_operations_of_a_convolution_and_of_its_gradients_are_those_that_padding_and_holes_leave(stride, padding):
    """With ones everywhere every multiplication adds 1 to a result."""
    image, kernel = tf.ones([2, 13, 3]), tf.ones([5, 3, 4])

    def convolve(image, kernel):
        return tf.nn.conv1d(image, kernel, stride, padding)

    def gradients(image, kernel):
        with tf.GradientTape() as tape:
            tape.watch([image, kernel])
            result = convolve(image, kernel)
        return tape.gradient(result, [image, kernel])

    multiplications = int(tf.reduce_sum(convolve(image, kernel)))
    assert multiplications < 2 * 13 * 5 * 3 * 4, "all places have all taps: there is nothing to leave out"
    assert counted(convolve, image, kernel) == {xla_data_pb2.F32: 2 * multiplications}
    assert [int(tf.reduce_sum(found)) for found in gradients(image, kernel)] == [multiplications] * 2
    assert counted(gradients, image, kernel) == {xla_data_pb2.F32: 2 * 2 * multiplications}


def test_products_in_a_loop_are_not_guessed():
    a = tf.ones([4, 4])
    with pytest.raises(ValueError, match="how often does while"):
        counted(lambda a: tf.while_loop(lambda i, _: i < 3, lambda i, x: (i + 1, x @ a), (0, a)), a)


def test_a_gpu_is_busy_while_a_stream_of_its_own_runs_something():
    from tensorflow.tsl.profiler.protobuf import xplane_pb2
    from training_parts.device import busy_seconds, stream_spans

    space = xplane_pb2.XSpace()

    def add(plane, line, *events, begin=10**18):
        """Events of (offset, duration) in microseconds on a line that begins so many nanoseconds after 1970."""
        row = plane.lines.add(name=line, timestamp_ns=begin)
        for offset, duration in events:
            row.events.add(offset_ps=offset * 10**6, duration_ps=duration * 10**6)

    first, second, host = (space.planes.add(name=name) for name in ("/device:GPU:0", "/device:GPU:1", "/host:CPU"))
    add(first, "Stream #20(Compute,MemcpyD2D)", (0, 4), (10, 4), (12, 1))
    add(first, "Stream #21(MemcpyH2D)", (8, 4), begin=10**18 + 1000)
    add(first, "XLA Modules", (0, 1000))
    add(second, "Stream #20(Compute)", (100, 50))
    add(host, "python", (200, 50))
    spans = stream_spans(space)
    assert len(spans) == 4
    assert busy_seconds(spans) == pytest.approx((4 + 5) / 1e6, rel=1e-9)  # 0 to 4, 9 to 14: what overlaps counts once
    assert busy_seconds([(begin, begin + 2 * (end - begin)) for begin, end in spans]) > busy_seconds(spans)


def test_seconds_are_those_until_a_result_is_there_without_the_first(monkeypatch):
    from training_parts import device

    clock = iter(np.cumsum([0, 7, 1, 0.5, 1, 0.25]).tolist())
    monkeypatch.setattr(device.time, "perf_counter", lambda: next(clock))
    assert device.seconds_of(lambda: tf.constant(0), 2).tolist() == [0.5, 0.25]


def test_a_size_that_does_not_fit_leaves_the_figures_of_the_others(monkeypatch, tmp_path, capsys):
    import gpu

    def on_device(what, options, size):
        return {"size": size} if size != "big" else sys.exit(1)

    monkeypatch.setattr(gpu, "on_device", on_device)
    monkeypatch.setenv("XDG_CACHE_HOME", "")  # which the program changes, and the next takes away
    monkeypatch.setenv("TF_XLA_FLAGS", "")
    out = tmp_path / "gpu.json"
    line = ["gpu.py", "--only", "step", "training", "--sizes", "tiny", "big", "--minutes", "0", "--out", str(out)]
    monkeypatch.setattr("sys.argv", line)
    with pytest.raises(SystemExit, match="failed: step"):
        gpu.main()
    assert json.loads(out.read_text())["step"] == [{"size": "tiny"}]
    assert "| tiny |" in capsys.readouterr().out
