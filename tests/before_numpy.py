"""The arithmetic of the workers, for tests that compute mels themselves: numpy reads it when it is loaded."""

import os

from xtts.precompute.workers.arithmetic import worker_environment

os.environ.update(worker_environment())
