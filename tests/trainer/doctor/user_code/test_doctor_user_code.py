"""`xtts-doctor trace`, `graph` and `profile`: 0 for healthy, 1 for a fault, 2 for what cannot be examined."""

import json

import pytest

from xtts.shared.errors import LockstepError
from xtts.trainer.doctor.cli import main
from xtts.trainer.doctor.user_code.profile import profile_call

FOREIGN = """
import tensorflow as tf

step = tf.function(lambda x: x + 1)

def train():
    print("a line of the user's own")
    step(tf.ones([2]))

def grow(number):
    step(tf.ones([2 + number]))

called = tf.data.Dataset.range(8).map(lambda x: tf.numpy_function(lambda v: 2 * v, [x], tf.int64))
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


def test_faults_are_found_and_named(doctor):
    code, out, _ = doctor("trace", "grow", "--calls", 3)
    assert code == 1
    assert "traced again 2 times: x changed" in out
    code, out, _ = doctor("graph", "called")
    assert code == 1
    assert ":called: PyFunc " in out


def test_what_is_healthy_and_what_is_not_there(doctor):
    code, out, err = doctor("trace", "train", "--calls", "3", "--json")
    assert (code, json.loads(out)["healthy"]) == (0, True)
    assert err.count("a line of the user's own") == 3
    code, out, err = doctor("trace", "missing")
    assert (code, out) == (2, "")
    assert "has no missing" in err


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
