"""What a run prints, and which of its validations is the best."""

import io
import json

import numpy as np
from rich.console import Console

from xtts.trainer.loop.chunk import CallResult, Chunk
from xtts.trainer.models.acoustic.objective import ACOUSTIC
from xtts.trainer.run.hosted_run import Best
from xtts.trainer.run.reporter import Reporter
from xtts.trainer.stored.run_folder import RunFolder


def chunk(step):
    """One step of a long run."""
    metrics = np.full([1, len(ACOUSTIC.step)], 1.2345)
    metrics[0, ACOUSTIC.step.index("skipped")] = 0
    metrics[0, ACOUSTIC.step.index("useful_frames")] = 35_621
    offsets, seconds = np.array([0]), np.array([[0.05, 0.1, 0.85]])
    result = CallResult(metrics=metrics, seconds=seconds, buckets=np.array([0]), offsets=offsets, wall=1.0)
    return Chunk(first_step=step, result=result, metrics=ACOUSTIC, outside_seconds=0.1, traces=12, epoch=1234)


def test_every_tenth_step_and_the_last_are_printed_with_their_losses_speed_and_the_time_left(tmp_path):
    terminal = Console(file=io.StringIO(), width=300)
    reporter = Reporter(RunFolder(tmp_path), terminal, ACOUSTIC, total_steps=105, log_every=10)
    for step in (99, 100, 101, 105):
        reporter.record(chunk(step))
    reporter.device(105)
    reporter.close()
    before, last, device = terminal.file.getvalue().splitlines()
    for part in ("step 100/105  loss 1.2345", "duration 1.23", "35,621 frames/s", "traces 12", "0:00:05 left"):
        assert part in before, part
    assert last.startswith("step 105/105")
    assert device == (
        "the device waited for batches in 9.1% of the time, and for validations, samples and checkpoints in 9.1%: "
        "32,383 useful frames/s in all"
    )
    assert json.loads((tmp_path / "metrics.jsonl").read_text().splitlines()[-1])["split"] == "device"


def test_the_flow_alone_tells_the_best_checkpoint_of_a_voice():
    best, validations = Best(), [(0.30, 0.40), (0.28, 0.45), (0.29, 0.35)]
    for step, (flow, duration) in enumerate(validations):
        best.note(step, ACOUSTIC.score({"prior": 0.1, "flow": flow, "duration": duration}))
    assert (best.step, best.loss, best.since) == (1, 0.28, 1)
