"""What runs of `xtts-train` record."""

import json
from pathlib import Path


def lines_of(run: Path, split: str = "train") -> list[dict[str, float]]:
    """Lines of metrics.jsonl: of every training step, or of every validation."""
    lines = map(json.loads, (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line["split"] == split]
