"""Loads the user's code by MODULE:NAME, and runs it; its own traceback is shown if it fails."""

import importlib
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any

import tensorflow as tf

from xtts.shared.errors import LockstepError
from xtts.trainer.doctor.checks.graph import data_set_check, function_check
from xtts.trainer.doctor.finding import Report, Result

POLYMORPHIC = type(tf.function(lambda: None))
"""The class that `tf.function` returns."""
ONE_CALL = "name a plain function that makes one call, as in: def one_step(number): step(next(batches))"
_HERE = os.path.dirname(__file__)


@contextmanager
def user_errors(where: str) -> Iterator[None]:
    """Show the traceback of the user's code, and report that it could not be examined.

    What that code prints goes to stderr: stdout is for the report.
    """
    try:
        with redirect_stdout(sys.stderr):
            yield
    except LockstepError:
        raise
    except (Exception, SystemExit) as error:  # user code may raise anything, even exit with 0
        shown = traceback.TracebackException.from_exception(error)
        shown.stack[:] = [frame for frame in shown.stack if os.path.dirname(frame.filename) != _HERE]
        print("".join(shown.format()), end="", file=sys.stderr)
        raise LockstepError(where, found=f"raised {type(error).__name__}, see above") from None


def load_target(target: str) -> Any:  # noqa: ANN401 - whatever the user's module holds
    """The object MODULE:NAME; the module is imported as by a script in the current folder."""
    module_name, colon, name = target.partition(":")
    if not (module_name and colon and name) or module_name.startswith("."):
        raise LockstepError(target, found="not MODULE:NAME", expected="as in my_training:one_step")
    sys.path.insert(0, "")
    with user_errors(target):
        try:
            module = importlib.import_module(module_name)
        except ModuleNotFoundError as error:
            if not f"{module_name}.".startswith(f"{error.name}."):  # one that the user's module imports
                raise
            raise LockstepError(
                target, found=f"module {module_name} cannot be imported", expected="one in this folder or installed"
            ) from None
        if not hasattr(module, name):
            raise LockstepError(target, found=f"module {module_name} has no {name}")
        return getattr(module, name)


def driver_of(target: str, found: object) -> Callable[[int], object]:
    """A function of the call's number that calls the user's target once."""
    if not callable(found):
        raise LockstepError(target, found=f"a {type(found).__name__}", expected="a function", fix=ONE_CALL)
    try:
        required = _required(found)
    except (TypeError, ValueError):  # a builtin
        raise LockstepError(target, found="a function without a readable signature", fix=ONE_CALL) from None
    names = ", ".join(parameter.name for parameter in required)
    if isinstance(found, POLYMORPHIC) and required:
        raise LockstepError(target, found=f"a tf.function that needs the arguments {names}", fix=ONE_CALL)
    if len(required) > 1:
        found_text = f"a function of {len(required)} arguments"
        raise LockstepError(target, found=found_text, expected="none or one", fix=ONE_CALL)
    if any(parameter.kind is parameter.KEYWORD_ONLY for parameter in required):
        raise LockstepError(target, found=f"a function that needs the keyword arguments {names}", fix=ONE_CALL)
    function: Callable[..., object] = found
    return function if required else lambda _: function()


def _required(function: Any) -> list[inspect.Parameter]:  # noqa: ANN401 - a callable or what tf.function makes
    body = function.python_function if isinstance(function, POLYMORPHIC) else function
    return [
        parameter
        for parameter in inspect.signature(body).parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]


def examine_graph(target: str) -> Report:
    """The graph section for a data set, a `tf.function` with a signature, or a function that returns one of these."""
    found = load_target(target)
    report = Report()
    if not isinstance(found, POLYMORPHIC | tf.data.Dataset) and not hasattr(found, "graph") and callable(found):
        with user_errors(target):
            found = found()
    if isinstance(found, tf.data.Dataset):
        report.add("graph", _data_set_result(target, found))
        return report
    if isinstance(found, POLYMORPHIC):
        found = _traced(target, found)
    if not isinstance(getattr(found, "graph", None), tf.Graph):
        raise LockstepError(
            target, found=f"a {type(found).__name__}", expected="a tf.data.Dataset, a tf.function or one of its traces"
        )
    report.add("graph", function_check({target: found.graph}))
    return report


def _data_set_result(target: str, dataset: tf.data.Dataset) -> Result:
    try:
        return data_set_check({target: dataset})
    except tf.errors.OpError as error:
        reason = (error.message or "").rpartition("} ")[2].partition(" [Op:")[0]
        raise LockstepError(
            target, found=f"a data set that does not show its graph ({reason})",
            fix="name it as it is before prefetch_to_device or copy_to_device",
        ) from None  # fmt: skip


def _traced(target: str, function: Any) -> Any:  # noqa: ANN401 - what tf.function makes, and its trace
    if function.input_signature is None and (required := _required(function)):
        names = ", ".join(parameter.name for parameter in required)
        raise LockstepError(
            target, found=f"cannot be traced without arguments ({names})", fix="give it an input_signature"
        )
    with user_errors(target):
        return function.get_concrete_function()
