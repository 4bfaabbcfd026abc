"""benchmarks/equal_minutes.py: the faster variant gets more steps, and what is there already is not trained again."""

import json
from pathlib import Path

import numpy as np
import pytest

SECONDS = {"narrow": 0.1, "wide": 0.4}
"""Of a step, by variant."""


class Commands:
    """What xtts-train and xtts-synth would leave behind, without training."""

    def __init__(self):
        self.trained = []

    def __call__(self, stage, *arguments, shown):
        words = [str(word) for word in arguments]
        if stage == "synth":
            figures = {"relative_mcd": 0.5, "duration_error": 0.1, "retrieval_at_1": 1.0}
            Path(words[words.index("--json") + 1]).write_text(json.dumps({"systems": {"synthesised": figures}}))
            return
        run, steps = Path(words[words.index("--out") + 1]), int(words[words.index("--steps") + 1])
        self.trained.append((run.name, words))
        run.mkdir(parents=True)
        slow_start = [{"split": "train", "step_seconds": 9.0}] * (steps // 4)
        seconds = SECONDS[run.name.partition("-")[0]]
        lines = slow_start + [{"split": "train", "step_seconds": seconds}] * (steps - steps // 4)
        lines.append({"split": "validation", "loss": 2.0 + int(words[-1].rpartition("=")[2])})
        (run / "metrics.jsonl").write_text("\n".join(map(json.dumps, lines)))


class Weights:
    def averages(self):
        return {"a": np.zeros([2, 3]), "b": np.zeros(4)}


@pytest.fixture
def commands(monkeypatch):
    import equal_minutes

    fake = Commands()
    monkeypatch.setattr(equal_minutes, "command", fake)
    monkeypatch.setattr(equal_minutes, "open_model", lambda run: Weights())
    return fake


def test_minutes_over_the_time_of_a_step_are_the_steps(commands, measure, tmp_path):
    asked = ["narrow", "wide:model.a=1;model.b=2", "--work", tmp_path, "--minutes", 2, "--seeds", 0, 1]
    figures, page = measure("equal_minutes", *asked)
    narrow, wide = figures["table"]
    assert (narrow["steps"], wide["steps"]) == (1200, 300)  # two minutes of 0.1 and of 0.4 s
    names = [name for name, _ in commands.trained]
    assert names[:4] == ["narrow-timed-0", "wide-timed-0", "narrow-timed-1", "wide-timed-1"]  # in turns
    assert {name for name in names[4:]} == {f"{v}-2-minutes-seed-{s}" for v in SECONDS for s in (0, 1)}
    words = commands.trained[-1][1]
    assert [words[i + 1] for i, word in enumerate(words) if word == "--set"][:2] == ["model.a=1", "model.b=2"]
    assert wide["validation_loss"] == "2.500 ±0.707"  # 2 and 3, the seeds' own
    assert wide["parameters"] == 10
    assert "| wide | 10 | 300 | 400 |" in page
    commands.trained.clear()
    assert measure("equal_minutes", *asked)[0]["table"] == figures["table"]
    assert commands.trained == [], "what is there is not trained again"
