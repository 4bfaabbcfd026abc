"""The terminal of a run: a panel for 80 columns, and losses that stay above it."""

import io
import re

import numpy as np
import pytest
from rich.console import Console

from xtts.trainer.loop.chunk import CallResult, Chunk
from xtts.trainer.models.acoustic.objective import ACOUSTIC
from xtts.trainer.run.reporter import Reporter
from xtts.trainer.stored.run_folder import RunFolder
from xtts.trainer.system.device import device_state


def chunk(step):
    """One step of a long run."""
    metrics = np.full([1, len(ACOUSTIC.step)], 1.2345)
    metrics[0, ACOUSTIC.step.index("skipped")] = 0
    metrics[0, ACOUSTIC.step.index("useful_frames")] = 35_621
    offsets, seconds = np.array([0]), np.array([[0.05, 0.1, 0.85]])
    result = CallResult(metrics=metrics, seconds=seconds, buckets=np.array([0]), offsets=offsets, wall=1.0)
    return Chunk(first_step=step, result=result, metrics=ACOUSTIC, outside_seconds=0.1, traces=12, epoch=1234)


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    return Console(file=io.StringIO(), width=80, force_terminal=True)


@pytest.fixture
def reporter(terminal, tmp_path):
    made = Reporter(
        RunFolder(tmp_path), terminal, ACOUSTIC, total_steps=250_000, log_every=10, buckets=12,
        device_state=device_state(),
    )
    yield made
    made.close()


def test_the_panel_needs_no_more_than_80_columns(reporter, terminal):
    reporter.record(chunk(123_456))
    reporter.close()  # shows the panel once more, and removes it
    shown = re.sub(r"\x1b\[[^A-Za-z]*[A-Za-z]", "", terminal.file.getvalue()).replace("\r", "\n").split("\n")
    lines = [line.rstrip() for line in shown if line.strip()][-4:]
    assert max(map(len, lines)) <= 80
    assert not any("…" in line for line in lines), lines
    for part in ("epoch 1234", "left", "duration 1.2345", "35,621 useful frames/s", "traces 12/12", "memory"):
        assert any(part in line for line in lines), part


def test_every_tenth_log_and_the_last_leave_their_losses_above_the_panel(reporter, terminal):
    for step in (10, 90, 100, 110, 200, 250_000):
        reporter.record(chunk(step))
    reporter.close()
    kept = [line for line in terminal.file.getvalue().replace("\r", "\n").split("\n") if "/250000" in line]
    shown = [line.partition("/250000")[0].split()[-1] for line in kept]
    assert shown == ["100", "200", "250000"]
    assert "loss 1.2345" in kept[0]
    assert "duration 1.23" in kept[0]
