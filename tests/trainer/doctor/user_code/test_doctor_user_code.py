"""`xtts-doctor trace`, `graph` and `profile`: 0 for healthy, 1 for a fault, 2 for what cannot be examined."""

import json

import pytest

from xtts.shared.errors import LockstepError
from xtts.trainer.doctor.cli import main
from xtts.trainer.doctor.user_code.profile import profile_call

FOREIGN = """
import tensorflow as tf

step = tf.function(lambda x: x + 1)
scaled = tf.function(lambda x, scale: x * scale)

def train():
    print("a line of the user's own")
    step(tf.ones([2]))

def grow(number):
    step(tf.ones([2 + number]))

def scale(number):
    scaled(tf.ones([2]), 1.0 / (1 + number))

def make(number):
    tf.function(lambda x: x)(tf.ones([2]))

data = tf.data.Dataset.range(8)
called = data.map(lambda x: tf.numpy_function(lambda v: 2 * v, [x], tf.int64))
sized = tf.function(lambda x: tf.zeros([tf.shape(x)[0]]), input_signature=[tf.TensorSpec([None, 4])])
VALUE = 3
"""


@pytest.fixture
def doctor(tmp_path, monkeypatch, call):
    """`doctor("trace", "name", options...)`: (exit code, stdout, stderr) of the command on `FOREIGN`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "foreign_steps.py").write_text(FOREIGN)

    def run(command, name, *options):
        code, out, err = call(main, command, f"foreign_steps:{name}", *options)
        return code, " ".join(out.split()), err

    return run


@pytest.mark.parametrize(
    ("command", "name", "messages"),
    [
        ("trace", "grow", ["traced again 2 times: x changed", "do pad to fixed shapes"]),
        ("trace", "scale", ["scale was Python float 1.0, then Python float 0.5", "do pass tf.constant(scale)"]),
        ("trace", "make", ["created again 2 times", "do create the tf.function, and the object whose method it is"]),
        ("graph", "called", [":called: PyFunc "]),
        ("graph", "sized", [":sized: tf.shape of x (None, 4) at Shape"]),
    ],
)
def test_a_fault_is_found_and_named(doctor, command, name, messages):
    code, out, _ = doctor(command, name, *(["--calls", 3] if command == "trace" else []))
    assert code == 1
    for message in messages:
        assert message in out


def test_what_is_healthy(doctor):
    code, out, err = doctor("trace", "train", "--calls", "3", "--json")
    assert (code, json.loads(out)["healthy"]) == (0, True)
    assert err.count("a line of the user's own") == 3
    code, out, _ = doctor("graph", "data")
    assert code == 0
    assert "advice none" in out


@pytest.mark.parametrize(
    ("command", "name", "message"),
    [
        ("trace", "missing", "has no missing"),
        ("graph", "VALUE", "a int, expected a tf.data.Dataset, a tf.function or one of its traces"),
    ],
)
def test_what_cannot_be_examined(doctor, command, name, message):
    code, out, err = doctor(command, name)
    assert (code, out) == (2, "")
    assert message in err


def test_the_steps_of_a_run_are_profiled(call, micro_options, compiled_steps, tmp_path):
    (tmp_path / "file").write_text("")
    arguments = ["profile", *micro_options, "--steps", 3, "--json", "--out"]
    code, out, err = call(main, *arguments, tmp_path / "trace", obj=compiled_steps)
    assert code == 0, err
    facts = json.loads(out)["sections"]["profile"]["facts"]
    assert facts["steps"]["count"] == 3
    assert 0 < facts["device busy"] <= 1
    assert 0 <= facts["input wait"] < 1
    assert facts["top ops"] > 0
    assert list((tmp_path / "trace" / "plugins" / "profile").glob("*/*.xplane.pb"))
    with pytest.raises(LockstepError, match="file: cannot be profiled into"):
        profile_call(lambda: 0.0, tmp_path / "file")
