"""A user's own functions: what makes them trace again, and what their graphs hold."""

import textwrap

import pytest
import tensorflow as tf

from xtts.shared.errors import LockstepError
from xtts.trainer.doctor.foreign import examine_graph
from xtts.trainer.doctor.trace import watch_calls


@pytest.fixture
def module(tmp_path, monkeypatch, request):
    """`module(source)` writes a module into the working folder and gives its name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    name = "foreign_" + "".join(c for c in request.node.name if c.isalnum())

    def write(source):
        head = "import numpy as np\nimport tensorflow as tf\n"
        (tmp_path / f"{name}.py").write_text(head + textwrap.dedent(source))
        return name

    return write


def test_a_function_retraced_by_a_python_scalar(module):
    name = module("""
        @tf.function
        def train_step(batch, scale):
            return tf.reduce_sum(batch) * scale

        def one_step(number):
            return train_step(tf.ones([4, 8]), 1.0 / (1 + number))
    """)
    report = watch_calls(f"{name}:one_step", 5)
    (finding,) = report.findings
    assert finding.what == f"train_step ({name}.py:4) traced again 4 times: scale changed"
    assert finding.cause == "scale was Python float 1.0, then Python float 0.5"
    assert finding.fix.startswith("pass tf.constant(scale) or give input_signature")
    assert "a call that is traced again takes" in finding.gain
    assert report.sections[0].facts[0].value == {"calls": 5, "traces": 5}


def test_shapes_types_objects_and_places_inside_arguments_are_named(module):
    name = module("""
        @tf.function
        def shaped(batch):
            return batch["mel"][0] + 1

        @tf.function
        def typed(x):
            return x + 1

        def one_step(number):
            shaped({"mel": [tf.ones([2, 5 + number % 2])]})
            typed(np.ones(3, np.float32 if number % 2 else np.float64))
            tf.function(lambda x: x * 2)(tf.ones([2]))
    """)
    named = [(f.what, f.fix) for f in watch_calls(f"{name}:one_step", 4).findings]
    assert len(named) == 3
    assert any("shaped" in what and "once: batch['mel'][0] changed" in what and "pad" in fix for what, fix in named)
    assert any("typed" in what and "once: x changed" in what and "cast" in fix for what, fix in named)
    assert any("3 times: the function itself changed" in what and "once and outside" in fix for what, fix in named)


def test_a_steady_function_has_no_finding_and_is_left_as_it_was(module):
    name = module("""
        @tf.function
        def train_step(batch, scale):
            return tf.reduce_sum(batch) * scale

        def one_step():
            return train_step(tf.ones([4, 8]), tf.constant(0.5))
    """)
    before = type(tf.function(lambda: None)).__call__
    report = watch_calls(f"{name}:one_step", 5)
    assert report.healthy
    assert report.sections[0].facts[0].text == "5 calls, 1 traces"
    assert type(tf.function(lambda: None)).__call__ is before


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("{}:missing", "has no missing"),
        ("{}", "not MODULE:NAME"),
        ("no_such_module:f", "no_such_module:f: module no_such_module cannot be imported"),
        ("{}:step", "a tf.function that has to be given x; name a plain function that makes one call"),
        ("{}:two", "a function of 2 arguments, expected none or one"),
        ("{}:VALUE", "a int, expected a function"),
        ("{}:fails", "raised ZeroDivisionError, see above"),
    ],
)
def test_what_cannot_be_called_is_told(module, target, message):
    name = module("""
        VALUE = 3
        step = tf.function(lambda x: x)

        def two(a, b):
            return a

        def fails():
            return 1 / 0
    """)
    with pytest.raises(LockstepError, match=message):
        watch_calls(target.format(name), 2)


def test_graphs_of_ones_own(module):
    name = module("""
        def double(x):
            return tf.numpy_function(lambda v: 2 * v, [x], tf.int64)

        data = tf.data.Dataset.range(8).map(double)

        def good_data():
            return tf.data.Dataset.range(8)

        @tf.function(input_signature=[tf.TensorSpec([None, 4])])
        def step(x):
            return tf.zeros([tf.shape(x)[0]])

        open_step = tf.function(lambda x: x)
    """)
    assert "PyFunc" in examine_graph(f"{name}:data").findings[0].what
    assert examine_graph(f"{name}:good_data").healthy
    assert "tf.shape of x (None, 4)" in examine_graph(f"{name}:step").findings[0].what
    with pytest.raises(LockstepError, match=r"cannot be traced without arguments .*give it an input_signature"):
        examine_graph(f"{name}:open_step")
