"""Watches every `tf.function` that some code calls, and names the argument that makes one trace again."""

import inspect
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tensorflow as tf

from xtts.trainer.doctor.finding import Fact, Finding, Report
from xtts.trainer.doctor.foreign import POLYMORPHIC, driver_of, foreign, load_target

_PYTHON_VALUES = (bool, int, float, str, bytes, type(None))
_NEW_FUNCTION = "the function itself"
_FIXES = {
    "value": "pass tf.constant({name}) or give input_signature: every Python value is a constant of a trace of its own",
    "shape": "pad to fixed shapes, or give input_signature with None there where a step may stay dynamic",
    "dtype": "cast it before the call, so that every call has one type",
    "object": "make the tf.function, and the objects it is given, once and outside the loop",
}


@dataclass(frozen=True, kw_only=True)
class Retrace:
    """One trace beyond a function's first."""

    function: str
    argument: str
    """The argument that changed, with its place inside it: `batch[0]`."""
    before: str
    now: str
    kind: str
    """Of the change: a key of `_FIXES`."""
    seconds: float
    """Of the whole call."""


@dataclass
class Watched:
    """What was seen of one body of code."""

    name: str
    calls: int = 0
    forms: list[dict[str, str]] = field(default_factory=list)
    """Arguments of the calls that were traced."""
    quick: list[float] = field(default_factory=list)
    """Seconds of the calls that were not."""


class TraceWatch:
    """Counts the calls and traces of every `tf.function` while `watching()`."""

    def __init__(self) -> None:
        self.functions: dict[object, Watched] = {}
        self.retraces: list[Retrace] = []

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Stand between every caller and every `tf.function`."""
        original = POLYMORPHIC.__call__

        def call(function: Any, *args: Any, **kwargs: Any) -> object:  # noqa: ANN401
            if not tf.executing_eagerly():  # part of the trace of another function
                return original(function, *args, **kwargs)
            before, began = function.experimental_get_tracing_count(), time.perf_counter()
            result = original(function, *args, **kwargs)
            traced = function.experimental_get_tracing_count() > before
            self.note(function, arguments(function, args, kwargs), traced, time.perf_counter() - began)
            return result

        POLYMORPHIC.__call__ = call
        try:
            yield
        finally:
            POLYMORPHIC.__call__ = original

    def note(self, function: Any, form: dict[str, str], traced: bool, seconds: float) -> None:  # noqa: ANN401
        """Record one call."""
        body = function.python_function
        # One body under ever new tf.function objects is traced for each of them: the code is what is counted.
        watched = self.functions.setdefault(getattr(body, "__code__", body), Watched(name=name_of(body)))
        watched.calls += 1
        if not traced:
            watched.quick.append(seconds)
            return
        if watched.forms:
            nearest = min(watched.forms, key=lambda known: len(_differences(known, form)))
            changed = _differences(nearest, form) or [(_NEW_FUNCTION, "one tf.function", "a new tf.function")]
            argument, before, now = changed[0]
            kind = "object" if argument == _NEW_FUNCTION else _kind(before, now)
            self.retraces.append(
                Retrace(function=watched.name, argument=argument, before=before, now=now, kind=kind, seconds=seconds)
            )
        watched.forms.append(form)


def name_of(body: Any) -> str:  # noqa: ANN401 - any callable
    """Name and place of a function."""
    code = getattr(body, "__code__", None)
    place = f" ({code.co_filename.rpartition('/')[2]}:{code.co_firstlineno})" if code else ""
    return f"{getattr(body, '__name__', type(body).__name__)}{place}"


def arguments(function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, str]:  # noqa: ANN401
    """Every argument by its name, and by its place inside lists and dicts, as far as a trace depends on it."""
    try:
        bound = inspect.signature(function.python_function).bind(*args, **kwargs)
    except (TypeError, ValueError):  # a builtin, or a wrapper that hides its arguments
        named: dict[str, Any] = {f"argument {i}": value for i, value in enumerate(args)} | dict(kwargs)
    else:
        named = dict(bound.arguments)
    forms: dict[str, str] = {}
    for name, value in named.items():
        forms.update(_forms(name, value))
    return forms


def _forms(name: str, value: Any) -> Iterator[tuple[str, str]]:  # noqa: ANN401
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _forms(f"{name}[{key!r}]", part)
    elif isinstance(value, list | tuple):
        for i, part in enumerate(value):
            yield from _forms(f"{name}[{i}]", part)
    elif isinstance(value, np.ndarray | np.generic):
        yield name, f"tensor {value.dtype.name}{list(value.shape)}"
    elif hasattr(value, "dtype") and hasattr(value, "shape"):
        yield name, f"tensor {tf.as_dtype(value.dtype).name}{value.shape}".replace("(", "[").replace(")", "]")
    elif isinstance(value, _PYTHON_VALUES):
        yield name, f"Python {type(value).__name__} {value!r}"
    else:
        yield name, f"{type(value).__name__} object {id(value):#x}"


def _differences(known: dict[str, str], form: dict[str, str]) -> list[tuple[str, str, str]]:
    names = [*form, *(name for name in known if name not in form)]
    pairs = [(name, known.get(name, "not given"), form.get(name, "not given")) for name in names]
    return [(name, before, now) for name, before, now in pairs if before != now]


def _kind(before: str, now: str) -> str:
    if not (before.startswith("tensor") and now.startswith("tensor")):
        return "value" if "Python" in before + now else "object"
    return "shape" if before.partition("[")[0] == now.partition("[")[0] else "dtype"


def watch_calls(target: str, calls: int) -> Report:
    """Call what MODULE:NAME names `calls` times, and report what was traced again."""
    step = driver_of(target, load_target(target))
    watch = TraceWatch()
    with foreign(target), watch.watching():
        for number in range(calls):
            step(number)
    return report_of(watch)


def report_of(watch: TraceWatch) -> Report:
    """Facts and findings of what was watched: one finding for each argument of each function."""
    facts = []
    for watched in watch.functions.values():
        counts = {"calls": watched.calls, "traces": len(watched.forms)}
        facts.append(Fact(name=watched.name, value=counts, text=f"{watched.calls} calls, {len(watched.forms)} traces"))
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
    slow = float(np.mean([retrace.seconds for retrace in group]))
    gain = f"a call that is traced again takes {1000 * slow:.1f} ms"
    if quick:
        gain += f", one that is not {1000 * float(np.mean(quick)):.1f} ms"
    return Finding(
        section="trace",
        what=f"{first.function} traced again {times}: {first.argument} changed",
        cause=f"{first.argument} was {first.before}, then {first.now}",
        fix=_FIXES[first.kind].format(name=first.argument),
        gain=gain,
    )
