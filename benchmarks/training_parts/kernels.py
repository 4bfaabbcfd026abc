"""Sequential iterations and kernels of a compiled function, counted in its optimised HLO."""

import re
from typing import NamedTuple

_HEADER = re.compile(r"^(ENTRY )?%?(\S+) \(.*\{$")
_INSTRUCTION = re.compile(r"^\s+(?:ROOT )?%?\S+ = (?:\(.*?\)|\S+) ([a-z][\w-]*)\(")
_CALLED = {"while": re.compile(r"\bbody=%?([\w.-]+)"), "call": re.compile(r"\bto_apply=%?([\w.-]+)")}
_TURNS = re.compile(r'"known_trip_count":\{"n":"(\d+)"')
_NO_KERNEL = {"parameter", "constant", "tuple", "get-tuple-element", "bitcast", "while", "call"}


class Loop(NamedTuple):
    """A `while` loop of the program."""

    turns: int
    """Iterations in total: those of a nested loop times those of the outer loop."""
    kernels: int
    """Kernels of one iteration, without those of nested loops."""


class Kernels(NamedTuple):
    """Loops and kernels that run sequentially."""

    once: int
    """Kernels outside loops."""
    loops: list[Loop]

    @property
    def launched(self) -> int:
        """Kernels launched per run."""
        return self.once + sum(loop.turns * loop.kernels for loop in self.loops)


def count_kernels(hlo: str) -> Kernels:
    """Count loops and kernels of `hlo`, the text of a compiled function.

    A kernel is a fusion, or a single instruction that computes or copies. Fusion depends on the backend; the number of
    loop iterations does not.
    """
    bodies: dict[str, list[str]] = {}
    name = entry = ""
    for line in hlo.splitlines():
        if header := _HEADER.match(line):
            name = header[2]
            bodies[name], entry = [], name if header[1] else entry
        elif name and _INSTRUCTION.match(line):
            bodies[name].append(line)
    once, loops = _walk(bodies, entry, 1)
    return Kernels(once=once, loops=loops)


def _walk(bodies: dict[str, list[str]], name: str, turns: int) -> tuple[int, list[Loop]]:
    """(kernels of one iteration of a computation that runs `turns` times, its loops including nested ones)."""
    kernels, loops = 0, []
    for line in bodies[name]:
        instruction = _INSTRUCTION.match(line)
        assert instruction
        operation = instruction[1]
        if operation == "conditional":
            raise ValueError(f"which branch counts? {line.strip()[:200]}")
        kernels += operation not in _NO_KERNEL
        called = _CALLED[operation].search(line) if operation in _CALLED else None
        if called and operation == "while":
            known = _TURNS.search(line)
            if not known:
                raise ValueError(f"XLA does not know how many turns a loop takes: {line.strip()[:200]}")
            inner = turns * int(known[1])
            count, nested = _walk(bodies, called[1], inner)
            loops += [Loop(turns=inner, kernels=count), *nested]
        elif called:
            count, nested = _walk(bodies, called[1], turns)
            kernels, loops = kernels + count, loops + nested
    return kernels, loops
