"""Code that is not ours: found by MODULE:NAME, run with its own traceback shown when it fails."""

import importlib
import inspect
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import tensorflow as tf

from xtts.shared.errors import LockstepError
from xtts.trainer.doctor.finding import Report
from xtts.trainer.doctor.graph import data_set_check, function_check

POLYMORPHIC = type(tf.function(lambda: None))
"""The class of what `tf.function` makes."""


@contextmanager
def foreign(where: str) -> Iterator[None]:
    """Show the traceback of the user's own code, and say that it could not be examined."""
    try:
        yield
    except LockstepError:
        raise
    except Exception as error:  # foreign code may raise anything at all
        traceback.print_exc()
        raise LockstepError(where, found=f"raised {type(error).__name__}, see above") from None


def load_target(target: str) -> Any:  # noqa: ANN401 - whatever the user's module holds
    """The object that MODULE:NAME names; the module is imported as a script beside us would be."""
    module_name, colon, name = target.partition(":")
    if not (module_name and colon and name):
        raise LockstepError(target, found="not MODULE:NAME", expected="as in my_training:one_step")
    sys.path.insert(0, "")
    if not _exists(module_name):
        raise LockstepError(
            target, found=f"module {module_name} cannot be imported", expected="one in this folder or installed"
        )
    with foreign(target):
        module = importlib.import_module(module_name)
    if not hasattr(module, name):
        raise LockstepError(target, found=f"module {module_name} has no {name}")
    return getattr(module, name)


def _exists(module_name: str) -> bool:
    try:
        return find_spec(module_name) is not None
    except (ImportError, ValueError):
        return False


def driver_of(target: str, found: object) -> Callable[[int], object]:
    """A function of the call's number that makes one call of what the user named."""
    fix = "name a plain function that makes one call, as in: def one_step(number): step(next(batches))"
    if not callable(found):
        raise LockstepError(target, found=f"a {type(found).__name__}", expected="a function", fix=fix)
    body = found.python_function if isinstance(found, POLYMORPHIC) else found
    required = [
        parameter
        for parameter in inspect.signature(body).parameters.values()
        if parameter.default is parameter.empty and parameter.kind in (parameter.POSITIONAL_ONLY,
                                                                      parameter.POSITIONAL_OR_KEYWORD)
    ]  # fmt: skip
    if isinstance(found, POLYMORPHIC) and required:
        names = ", ".join(parameter.name for parameter in required)
        raise LockstepError(target, found=f"a tf.function that has to be given {names}", fix=fix)
    if len(required) > 1:
        raise LockstepError(target, found=f"a function of {len(required)} arguments", expected="none or one", fix=fix)
    function: Callable[..., object] = found
    return function if required else lambda _: function()


def examine_graph(target: str) -> Report:
    """The graph section for a data set, a `tf.function` with a signature, or a function that gives one of these."""
    found = load_target(target)
    report = Report()
    if not isinstance(found, POLYMORPHIC | tf.data.Dataset) and not hasattr(found, "graph") and callable(found):
        with foreign(target):
            found = found()
    if isinstance(found, tf.data.Dataset):
        report.add("graph", data_set_check({target: found}))
        return report
    if isinstance(found, POLYMORPHIC):
        try:
            found = found.get_concrete_function()
        except (TypeError, ValueError) as error:
            reason = str(error).splitlines()[0][:200]
            raise LockstepError(
                target, found=f"cannot be traced without arguments ({reason})", fix="give it an input_signature"
            ) from None
    if not isinstance(getattr(found, "graph", None), tf.Graph):
        raise LockstepError(
            target, found=f"a {type(found).__name__}", expected="a tf.data.Dataset, a tf.function or one of its traces"
        )
    report.add("graph", function_check({target: found.graph}))
    return report
