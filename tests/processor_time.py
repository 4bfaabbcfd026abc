"""A report of the tests that use most processor time, read to keep `make test` quick.

Processor time, of the test's process and of those that it started, since the clock would measure what else the machine
does. It depends on the machine too, and so decides nothing. What a session fixture uses is charged to itself, not to
the test that happened to ask for it first.
"""

import os
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

import pytest

TICKS = os.sysconf("SC_CLK_TCK")
DEAREST = 10
BEFORE, FIXTURES = pytest.StashKey[float](), pytest.StashKey[dict[str, float]]()
USED = "processor seconds"


def processor_seconds() -> float:
    """Processor time of this process and of all below it, those that have ended included."""
    ticks, children, used, below = {}, defaultdict(list), 0, [os.getpid()]
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):
            fields, process = path.read_text().rpartition(")")[2].split(), int(path.parent.name)
            children[int(fields[1])].append(process)
            ticks[process] = sum(map(int, fields[11:15]))  # own and waited-for, user and system
    if not ticks:  # macOS has no /proc: here only what has ended is counted
        return sum(os.times()[:4])
    while below:
        process = below.pop()
        used += ticks.get(process, 0)
        below += children[process]
    return used / TICKS


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef, request):
    """Charge a session fixture, without those it asked for, to itself."""
    if fixturedef.scope != "session":
        return (yield)
    charged = request.config.stash.setdefault(FIXTURES, {})
    before, others = processor_seconds(), sum(charged.values())
    try:
        return (yield)
    finally:
        charged[fixturedef.argname] = processor_seconds() - before - (sum(charged.values()) - others)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item, nextitem):
    """Note what was used before a test."""
    item.stash[FIXTURES] = dict(item.config.stash.setdefault(FIXTURES, {}))
    item.stash[BEFORE] = processor_seconds()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Hand on what a test used, and the session fixtures that it was the first to ask for."""
    report = yield
    if call.when == "call":
        known = item.stash[FIXTURES]
        made = {name: used for name, used in item.config.stash[FIXTURES].items() if name not in known}
        used = processor_seconds() - item.stash[BEFORE] - sum(made.values())
        report.user_properties.append((USED, {"this test": used, **{f"fixture {name}": made[name] for name in made}}))
    return report


def pytest_terminal_summary(terminalreporter):
    """The processor time of the session, and what used most of it."""
    reports = [report for kind in ("passed", "failed") for report in terminalreporter.getreports(kind)]
    spent = [
        (used, report.nodeid if what == "this test" else what)
        for report in reports
        for what, used in dict(report.user_properties).get(USED, {}).items()
    ]
    total = sum(used for used, _ in spent)
    terminalreporter.write_line(f"processor time of {len(reports)} tests: {total:.0f} s, and the dearest {DEAREST}:")
    for used, name in sorted(spent, reverse=True)[:DEAREST]:
        terminalreporter.write_line(f"{used:8.1f} s  {name}")
