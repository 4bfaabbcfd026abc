"""The arguments of a `tf.function` that a trace depends on, and what differs between two calls."""

import inspect
import itertools
import weakref
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf


class Part(NamedTuple):
    """One value inside the arguments of a call."""

    kind: str
    """`tensor`; `value`: a constant of the trace; `structure`: a container or None; `object`: compared by identity."""
    text: str


Form = dict[str, Part]
"""Every argument of a call by name, with its path inside lists and dicts: `batch['mel'][0]`."""

_ABSENT = Part("structure", "not given")


class Forms:
    """Describes calls as TensorFlow sees them: tensors by shape and dtype, Python values by value."""

    def __init__(self) -> None:
        self._objects: dict[int, tuple[weakref.ref[Any], int]] = {}
        """(object, number) by address; addresses may be reused."""
        self._numbers = itertools.count(1)

    def of(self, function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Form:  # noqa: ANN401
        """The form of one call of a `tf.function`."""
        try:
            bound = inspect.signature(function.python_function).bind(*args, **kwargs)
        except (TypeError, ValueError):  # a builtin, or a wrapper that hides its arguments
            named: dict[str, Any] = {f"argument {i}": value for i, value in enumerate(args)} | dict(kwargs)
        else:
            bound.apply_defaults()  # to TensorFlow a default passed explicitly is the same
            named = bound.arguments
        return dict(part for name, value in named.items() for part in self._parts(name, value))

    def _parts(self, name: str, value: Any) -> Iterator[tuple[str, Part]]:  # noqa: ANN401
        if value is None:
            yield name, Part("structure", "None")
        elif isinstance(value, Mapping):
            for key, part in value.items():
                yield from self._parts(f"{name}[{key!r}]", part)
        elif isinstance(value, list | tuple):
            kind = "list" if isinstance(value, list) else type(value).__name__
            yield name, Part("structure", f"{kind} of {len(value)}")
            for i, part in enumerate(value):
                yield from self._parts(f"{name}[{i}]", part)
        elif hasattr(value, "__tf_flatten__"):
            metadata, components = value.__tf_flatten__()
            yield from self._parts(f"metadata of {name}", metadata)
            yield from self._parts(f"components of {name}", components)
        else:
            yield name, self._leaf(value)

    def _leaf(self, value: Any) -> Part:  # noqa: ANN401
        if isinstance(value, np.ndarray | np.generic) or (hasattr(value, "dtype") and hasattr(value, "shape")):
            shape = str(value.shape).strip("()").rstrip(",")
            return Part("tensor", f"tensor {getattr(value.dtype, 'name', value.dtype)}[{shape}]")
        if isinstance(value, tf.data.Dataset | tf.data.Iterator | tf.experimental.ExtensionType):
            return Part("structure", str(tf.type_spec_from_value(value)))
        try:
            reference = weakref.ref(value)
        except TypeError:  # as in TensorFlow: what has no weak reference is compared by value
            return Part("value", f"Python {type(value).__name__} {value!r}")
        known, number = self._objects.get(id(value), (None, 0))
        if known is None or known() is not value:
            number = next(self._numbers)
            self._objects[id(value)] = (reference, number)
        return Part("object", f"{type(value).__name__} object {number}")


def differences(known: Form, form: Form) -> list[tuple[str, Part, Part]]:
    """(name, before, now) of every part that differs, in the order of the later call."""
    names = [*form, *(name for name in known if name not in form)]
    parts = [(name, known.get(name, _ABSENT), form.get(name, _ABSENT)) for name in names]
    return [(name, before, now) for name, before, now in parts if before != now]


def change_kind(before: Part, now: Part) -> str:
    """`shape`, `dtype`, `value`, `structure` or `object`."""
    kinds = {before.kind, now.kind}
    if kinds == {"tensor"}:
        return "shape" if before.text.partition("[")[0] == now.text.partition("[")[0] else "dtype"
    return next(kind for kind in ("structure", "value", "object") if kind in kinds)
