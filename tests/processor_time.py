"""The rule that keeps `make test` quick: a test without the marker `long` uses little processor time.

Processor time, of the test's process and of those that it started, since the clock would measure what else the machine
does. What a session fixture uses is not charged to the test that happened to ask for it first.
"""

import os
import resource
from collections import defaultdict
from pathlib import Path

import pytest

TICKS = os.sysconf("SC_CLK_TCK")
TEST_SECONDS = 10.0
"""Twice the five that a test should take: where others compute, the same work takes more processor time."""
FIXTURE_SECONDS = 120.0
"""Likewise; the longest trains a model once for the session."""
BEFORE, FIXTURES = pytest.StashKey[float](), pytest.StashKey[dict[str, float]]()
USED = "processor seconds"


def processor_seconds() -> float:
    """Processor time of this process and of all below it, those that have ended included."""
    try:
        return _of_tree(os.getpid())
    except FileNotFoundError:  # macOS has no /proc: here only what has ended is counted
        return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def _of_tree(root: int) -> float:
    ticks, children = {}, defaultdict(list)
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                fields = (path / "stat").read_text().rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                if int(path.name) == root:
                    raise
                continue
            children[int(fields[1])].append(int(path.name))
            ticks[int(path.name)] = sum(map(int, fields[11:15]))  # own and waited-for, user and system
    found, below = 0, [root]
    while below:
        process = below.pop()
        found += ticks[process]
        below += children[process]
    return found / TICKS


def refusal(what: str, used: float, limit: float) -> str:
    """What is wrong with a test or a session fixture, and what to do; empty where nothing is."""
    if used <= limit:
        return ""
    return (
        f"{what} used {used:.1f} s of processor time, its processes included, and may use {limit:.0f}: show it at a "
        "lower level or on less data, use what a session fixture has made, or mark the test with @pytest.mark.long"
    )


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
    """Fail a test that used too much, and the first one that asked for a session fixture which did."""
    report = yield
    if call.when == "call":
        known = item.stash[FIXTURES]
        made = {name: used for name, used in item.config.stash[FIXTURES].items() if name not in known}
        used = processor_seconds() - item.stash[BEFORE] - sum(made.values())
        report.user_properties.append((USED, {"this test": used, **{f"fixture {name}": made[name] for name in made}}))
        told = [refusal("this test", used, TEST_SECONDS)]
        told += [refusal(f"the session fixture {name}", spent, FIXTURE_SECONDS) for name, spent in made.items()]
        if report.passed and any(told) and not item.get_closest_marker("long"):
            report.outcome, report.longrepr = "failed", "\n".join(filter(None, told))
    return report


def pytest_terminal_summary(terminalreporter):
    """The processor time of the session, and what used most of it."""
    reports = [report for kind in ("passed", "failed") for report in terminalreporter.getreports(kind)]
    spent = [
        (used, report.nodeid if what == "this test" else what)
        for report in reports
        for what, used in dict(report.user_properties).get(USED, {}).items()
    ]
    terminalreporter.write_line(f"processor time of {len(reports)} tests: {sum(used for used, _ in spent):.0f} s")
    for used, name in sorted(spent, reverse=True)[:12]:
        terminalreporter.write_line(f"{used:8.1f} s  {name}")
