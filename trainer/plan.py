"""What one run is to do."""

from dataclasses import dataclass
from pathlib import Path

from xtts.shared.cache_spec import CacheSpec
from xtts.shared.config import Config
from xtts.trainer.run_folder import RunFolder


@dataclass(frozen=True, kw_only=True)
class RunPlan:
    """What the command line asked for, checked before TensorFlow was imported."""

    config: Config
    cache: Path
    spec: CacheSpec
    sizes: dict[int, int]
    """B by bucket number."""
    folder: RunFolder
    resume: Path | None
    """Checkpoint to continue."""
    init_from: Path | None
    """Checkpoint whose averaged weights to start from."""
