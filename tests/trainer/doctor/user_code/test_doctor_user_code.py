"""`xtts-doctor trace` and `graph` as users call them: 0 for healthy, 1 for a fault, 2 for what cannot be examined."""

import json

import pytest
from click.testing import CliRunner

from xtts.trainer.doctor.cli import main

TRACED = """
    step = tf.function(lambda x: x + 1)

    def train():
        print("a line of the user's own")
        step(tf.ones([2]))

    def grow(number):
        step(tf.ones([2 + number]))
"""
GRAPHS = """
    data = tf.data.Dataset.range(8)
    generated = tf.data.Dataset.from_generator(lambda: iter([1, 2]), output_signature=tf.TensorSpec([], tf.int32))
    called = data.map(lambda x: tf.numpy_function(lambda v: 2 * v, [x], tf.int64))

    def copied(_):
        # A GeneratorDataset as from_generator is, and no Python in it.
        return data.apply(tf.data.experimental.copy_to_device("/cpu:0"))

    moved = data.flat_map(copied)
    on_device = data.apply(tf.data.experimental.prefetch_to_device("/cpu:0"))

    @tf.function(input_signature=[tf.TensorSpec([None, 4])])
    def train(x):
        return tf.zeros([tf.shape(x)[0]])

    @tf.function(input_signature=[tf.TensorSpec([2, 4])])
    def locked(x):
        return x + 1

    @tf.function(input_signature=[tf.TensorSpec([2])])
    def refuses(x):
        raise ValueError("the user's own words")

    @tf.function
    def divides():
        return 1 / 0

    open_step = tf.function(lambda x: x)
    VALUE = 3
"""


@pytest.fixture
def doctor(module):
    """`doctor("trace", source, "name", options...)`: (exit code, stdout, stderr) of the command."""

    def run(command, source, name, *options):
        done = CliRunner().invoke(main, [command, f"{module(source)}:{name}", *options])
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        assert "doctor/" not in done.stderr  # no line of ours in a traceback
        return done.exit_code, " ".join(done.stdout.split()), done.stderr

    return run


def test_trace_of_a_healthy_function(doctor):
    code, out, err = doctor("trace", TRACED, "train", "--calls", "3", "--json")
    assert code == 0, err
    assert json.loads(out)["healthy"]
    assert err.count("a line of the user's own") == 3


def test_trace_of_a_function_that_is_traced_again(doctor):
    code, out, _ = doctor("trace", TRACED, "grow", "--calls", "3")
    assert code == 1
    assert "traced again 2 times: x changed" in out
    assert "do pad to fixed shapes" in out


@pytest.mark.parametrize("name", ["data", "moved", "locked"])
def test_graph_of_what_is_healthy(doctor, name):
    code, out, err = doctor("graph", GRAPHS, name)
    assert code == 0, out + err
    assert "advice none" in out


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("generated", ":generated: PyFunc "),
        ("called", ":called: PyFunc "),
        ("train", ":train: tf.shape of x (None, 4) at Shape"),
    ],
)
def test_graph_of_what_has_a_fault(doctor, name, message):
    code, out, _ = doctor("graph", GRAPHS, name)
    assert code == 1
    assert message in out


@pytest.mark.parametrize(
    ("command", "name", "message"),
    [
        ("trace", "missing", "has no missing"),
        ("trace", "data", "Dataset, expected a function; name a plain function"),
        ("trace", "divides", "Error, see above"),
        ("graph", "missing", "has no missing"),
        ("graph", "VALUE", "a int, expected a tf.data.Dataset, a tf.function or one of its traces"),
        ("graph", "open_step", "cannot be traced without arguments (x); give it an input_signature"),
        ("graph", "refuses", "raised ValueError, see above"),
        ("graph", "divides", "Error, see above"),
        ("graph", "on_device", "GeneratorDatasetOp::Dataset does not support serialization); name it as it is before"),
    ],
)
def test_what_cannot_be_examined(doctor, command, name, message):
    code, out, err = doctor(command, GRAPHS, name)
    assert (code, out) == (2, "")
    last = err.splitlines()[-1]
    assert last.startswith("error: ")
    assert message in last
    assert ("Traceback" in err) == ("see above" in message)


def test_the_users_own_traceback_is_shown(doctor):
    err = doctor("graph", GRAPHS, "refuses")[2]
    assert "ValueError: the user's own words" in err
    assert "in refuses" in err
    assert "input_signature" not in err.splitlines()[-1]


@pytest.mark.parametrize("command", ["trace", "graph"])
@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import no_such_library", "raised ModuleNotFoundError, see above"),
        ("raise SystemExit(0)", "raised SystemExit, see above"),
        ("def __getattr__(name):\n    raise RuntimeError(name)", "raised RuntimeError, see above"),
    ],
)
def test_a_module_that_fails(doctor, command, source, message):
    code, _, err = doctor(command, source, "step")
    assert code == 2
    assert err.splitlines()[-1].endswith(message)
    assert source.splitlines()[-1].strip() in err


@pytest.mark.parametrize("command", ["trace", "graph"])
def test_a_module_that_is_not_there(command):
    done = CliRunner().invoke(main, [command, "no_such_module:step"])
    assert done.exit_code == 2
    assert done.stderr == (
        "error: no_such_module:step: module no_such_module cannot be imported, "
        "expected one in this folder or installed\n"
    )
