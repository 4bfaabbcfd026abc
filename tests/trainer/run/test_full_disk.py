"""A disk that fills up while the run writes: a one-line error, and nothing saved is lost."""

import resource
from contextlib import contextmanager

import numpy as np
import pytest
from rich.console import Console

from xtts.shared.errors import LockstepError
from xtts.trainer.loop.chunk import CallResult, Chunk
from xtts.trainer.models.acoustic.objective import ACOUSTIC
from xtts.trainer.run.reporter import Reporter
from xtts.trainer.run.tensorboard import TensorBoard
from xtts.trainer.stored.checkpoint import find_checkpoint, load_arrays, save_checkpoint
from xtts.trainer.stored.run_folder import RunFolder

IDENTITY = {"settings": {}, "cache": "a" * 64, "cache_fingerprint": "f" * 64}


@contextmanager
def largest_file(size):
    """No file of this process grows beyond `size` bytes: writing fails in the middle, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture
def folder(tmp_path):
    tmp_path.joinpath("run").mkdir()
    return RunFolder(tmp_path / "run")


def rows(steps):
    metrics = np.ones([steps, len(ACOUSTIC.step)], np.float32)
    result = CallResult(metrics, np.ones([steps, 3]), np.zeros(steps, np.int32), np.zeros(steps, np.int64), 3.0 * steps)
    return Chunk(first_step=1, result=result, metrics=ACOUSTIC, outside_seconds=0.0, traces=1, epoch=0)


@pytest.mark.parametrize("size", [0, 1000, 20_000])
def test_a_save_that_is_cut_keeps_the_older_checkpoint(tmp_path, size):
    arrays = {"weights/a": np.arange(4000.0)}
    save_checkpoint(tmp_path, arrays, step=1, identity=IDENTITY, progress={})
    with largest_file(size), pytest.raises(LockstepError, match=r"step-2: cannot be saved \(File too large\); free"):
        save_checkpoint(tmp_path, arrays, step=2, identity=IDENTITY, progress={})
    assert [path.name for path in tmp_path.iterdir()] == ["step-1"]
    assert np.array_equal(load_arrays(find_checkpoint(tmp_path))["weights/a"], arrays["weights/a"])


@pytest.mark.parametrize("steps", [4, 20])  # that fit the buffer of the file, and are written again when it is closed
@pytest.mark.parametrize("size", [0, 700])
def test_metrics_that_cannot_be_written_stop_the_run_in_one_line(folder, size, steps):
    reporter = Reporter(folder, Console(quiet=True), ACOUSTIC, total_steps=99, log_every=10)
    with largest_file(size):
        with pytest.raises(LockstepError, match=r"metrics.jsonl: cannot be written \(File too large\); free the disk"):
            reporter.record(rows(steps))
        reporter.close()
    assert folder.metrics_file.stat().st_size == size
    folder.forget_after(99)  # a line cut short is dropped by the run that continues
    lines = folder.metrics_file.read_text()
    assert lines == "" if size == 0 else lines.endswith("}\n")
    assert len(lines) <= size


def test_a_continued_run_keeps_its_metrics_if_they_cannot_be_rewritten(folder):
    folder.metrics_file.write_text('{"split": "train", "step": 1}\n' * 100)
    with largest_file(300), pytest.raises(LockstepError, match=r"metrics.jsonl: cannot be written \(File too large"):
        folder.forget_after(1)
    assert folder.metrics_file.read_text() == '{"split": "train", "step": 1}\n' * 100


def test_curves_that_cannot_be_written_stop_the_run_in_one_line(folder):
    folder.metrics_file.symlink_to("/dev/null")  # its metrics still fit
    reporter = Reporter(
        folder, Console(quiet=True), ACOUSTIC, total_steps=99, log_every=10,
        tensorboard=TensorBoard(folder.tensorboard),
    )
    with largest_file(0):
        with pytest.raises(LockstepError, match=r"events.out.*: cannot be written \(File too large\); free the disk"):
            reporter.record(rows(10))
        reporter.close()
