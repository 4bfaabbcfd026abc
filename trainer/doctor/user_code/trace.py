"""Watches every `tf.function` that some code calls, and names what makes it retrace."""

import functools
import gc
import inspect
import time
import weakref
from collections.abc import AsyncGenerator, Coroutine, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MethodType
from typing import Any

import numpy as np
import tensorflow as tf

from xtts.shared.errors import LockstepError
from xtts.trainer.doctor.finding import Fact, Finding, Report
from xtts.trainer.doctor.user_code.arguments import Form, Forms, change_kind, differences
from xtts.trainer.doctor.user_code.load import ONE_CALL, POLYMORPHIC, driver_of, load_target, user_errors

_FIXES = {
    "value": "pass tf.constant({name}) or set input_signature: every new Python value gets its own trace",
    "shape": "pad to fixed shapes, or set input_signature with None there if the step may stay dynamic",
    "dtype": "cast it before the call, so that every call has the same dtype",
    "structure": "give every call the same arguments and keys, in lists of the same length",
    "object": "create {name} once, outside the loop, or pass the tensors that it holds",
    "created": "create the tf.function, and the object whose method it is, once, outside the loop",
    "context": "call it in one tf.distribute scope and on one device, with each variable in one place",
}


@dataclass(frozen=True, kw_only=True)
class Retrace:
    """A trace after the first one."""

    function: str
    kind: str
    """Kind of change: a key of `_FIXES`."""
    argument: str = ""
    """The argument that changed, with the path inside it: `batch[0]`; empty if none did."""
    before: str = ""
    now: str = ""
    seconds: float
    """Seconds of the whole call."""


@dataclass
class Instance:
    """Calls and traces of one `tf.function` object."""

    object: "weakref.ref[Any]"
    made: int
    """Round in which it was created, -1 before the first."""
    method: bool
    """Created by TensorFlow at the first use of a method, no matter how old the method's object is."""
    called: int = 0
    """Round of its last call."""
    traces: list[Form] = field(default_factory=list)
    """Arguments of the calls that were traced."""
    seconds: float = 0.0
    """Seconds of the first traced call."""


@dataclass
class Watched:
    """Calls and traces of one Python function, over all `tf.function` objects created from it."""

    name: str
    calls: int = 0
    instances: list[Instance] = field(default_factory=list)
    """In the order of their first calls."""
    quick: list[float] = field(default_factory=list)
    """Seconds of the calls that were not traced."""

    def single_use(self) -> Iterator[Instance]:
        """Instances created after the first round and used once.

        Such an instance no longer exists, or was traced for the same arguments as an earlier one. One instance per
        bucket, created when first needed, is neither.
        """
        known: list[Form] = []
        for one in self.instances:
            if known and one.traces and one.made > 0:
                used_once = one.called == one.made and not one.method and one.traces[0] in known
                if used_once or one.object() is None:
                    yield one
            known += one.traces


class TraceWatch:
    """Counts the calls and traces of every `tf.function` while `watching()`."""

    def __init__(self) -> None:
        self.functions: dict[object, Watched] = {}
        self.retraces: list[Retrace] = []
        self.round = 0
        """Number of the call of the user's step; set by the caller."""
        self._forms = Forms()
        self._made: weakref.WeakKeyDictionary[Any, tuple[int, bool]] = weakref.WeakKeyDictionary()
        self._instances: weakref.WeakKeyDictionary[Any, Instance] = weakref.WeakKeyDictionary()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Intercept every call of a `tf.function`."""
        original, original_init = POLYMORPHIC.__call__, POLYMORPHIC.__init__

        def init(function: Any, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
            original_init(function, *args, **kwargs)
            # TensorFlow binds a method in its own wrapper, which AutoGraph changes while tracing.
            method = isinstance(getattr(function.python_function, "__wrapped__", None), MethodType)
            self._made[function] = self.round, method

        def call(function: Any, *args: Any, **kwargs: Any) -> object:  # noqa: ANN401
            if not tf.executing_eagerly():  # part of the trace of another function
                return original(function, *args, **kwargs)
            before, began = function.experimental_get_tracing_count(), time.perf_counter()
            result = original(function, *args, **kwargs)
            seconds = time.perf_counter() - began
            traced = function.experimental_get_tracing_count() > before
            self._note(function, self._forms.of(function, args, kwargs) if traced else None, seconds)
            return result

        POLYMORPHIC.__call__, POLYMORPHIC.__init__ = call, init
        try:
            yield
        finally:
            POLYMORPHIC.__call__, POLYMORPHIC.__init__ = original, original_init
        gc.collect()  # a tf.function is in reference cycles: unreferenced ones are freed only now
        self.retraces += [
            Retrace(function=watched.name, kind="created", seconds=one.seconds)
            for watched in self.functions.values()
            for one in watched.single_use()
        ]

    def _note(self, function: Any, form: Form | None, seconds: float) -> None:  # noqa: ANN401
        """Record one call; `form` is None unless it was traced."""
        body = own_function(function.python_function)
        watched = self.functions.setdefault(getattr(body, "__code__", type(body)), Watched(name=name_of(body)))
        one = self._instances.get(function)
        if one is None:
            made, method = self._made.get(function, (-1, False))
            one = Instance(object=weakref.ref(function), made=made, method=method)
            self._instances[function] = one
            watched.instances.append(one)
        watched.calls += 1
        one.called = self.round
        if form is None:
            watched.quick.append(seconds)
            return
        if one.traces:
            self.retraces.append(_retrace(watched.name, one.traces, form, seconds))
        else:
            one.seconds = seconds
        one.traces.append(form)


def own_function(body: Any) -> Any:  # noqa: ANN401 - any callable
    """The user's function inside the wrappers of TensorFlow, functools and other decorators."""
    body = inspect.unwrap(body)
    while isinstance(body, functools.partial):
        body = inspect.unwrap(body.func)
    return getattr(body, "__func__", body)


def name_of(body: Any) -> str:  # noqa: ANN401 - any callable
    """Name and place of a function."""
    code = getattr(body, "__code__", None)
    place = f" ({code.co_filename.rpartition('/')[2]}:{code.co_firstlineno})" if code else ""
    return f"{getattr(body, '__qualname__', type(body).__qualname__).rpartition('<locals>.')[2]}{place}"


def _retrace(function: str, known: list[Form], form: Form, seconds: float) -> Retrace:
    changed = differences(min(known, key=lambda earlier: len(differences(earlier, form))), form)
    if not changed:
        return Retrace(function=function, kind="context", seconds=seconds)
    # Objects may compare equal for TensorFlow; any other change is certainly the cause.
    argument, before, now = min(changed, key=lambda change: change_kind(*change[1:]) == "object")
    return Retrace(
        function=function, kind=change_kind(before, now), argument=argument, before=before.text, now=now.text,
        seconds=seconds,
    )  # fmt: skip


def watch_calls(target: str, calls: int) -> Report:
    """Call MODULE:NAME `calls` times, and report what was traced again."""
    step = driver_of(target, load_target(target))
    watch = TraceWatch()
    with user_errors(target), watch.watching():
        for number in range(calls):
            watch.round = number
            _refuse_unrun(target, step(number))
    return report_of(watch)


def _refuse_unrun(target: str, result: object) -> None:
    if isinstance(result, Generator | Coroutine | AsyncGenerator):
        raise LockstepError(target, found=f"gives a {type(result).__name__}, which nobody runs", fix=ONE_CALL)


def report_of(watch: TraceWatch) -> Report:
    """The facts, and one finding for each changed argument of each function."""
    facts = []
    for watched in watch.functions.values():
        traces = sum(len(one.traces) for one in watched.instances)
        counts = {"calls": watched.calls, "traces": traces, "functions": len(watched.instances)}
        text = f"{watched.calls} calls, {traces} traces"
        if len(watched.instances) > 1:
            text += f" of {len(watched.instances)} tf.functions"
        facts.append(Fact(name=watched.name, value=counts, text=text))
    if not facts:
        facts.append(Fact(name="functions", value=0, text="no tf.function was called"))
    groups: dict[tuple[str, str, str], list[Retrace]] = {}
    for retrace in watch.retraces:
        groups.setdefault((retrace.function, retrace.argument, retrace.kind), []).append(retrace)
    quick = {w.name: w.quick for w in watch.functions.values()}
    report = Report()
    report.add("trace", (facts, [_finding(group, quick[group[0].function]) for group in groups.values()]))
    return report


def _finding(group: list[Retrace], quick: list[float]) -> Finding:
    first, times = group[0], f"{len(group)} times" if len(group) > 1 else "once"
    if first.kind == "created":
        what = f"created again {times}"
        cause = "a new tf.function has no traces, so it is traced again"
    else:
        what = f"traced again {times}: {first.argument or 'no argument'} changed"
        cause = f"{first.argument} was {first.before}, then {first.now}"
    if first.kind == "context":
        cause = "the arguments were equal; the scope or device of the call differs, or which variables are shared"
    slow = float(np.mean([retrace.seconds for retrace in group]))
    gain = f"a call that is traced again takes {1000 * slow:.1f} ms"
    if quick:
        gain += f", one that is not {1000 * float(np.mean(quick)):.1f} ms"
    return Finding(
        name="retracing",
        section="trace",
        what=f"{first.function} {what}",
        cause=cause,
        fix=_FIXES[first.kind].format(name=first.argument),
        gain=gain,
    )
