"""The command on healthy and faulty set-ups, with steps that this process compiled."""

import json
import os

import pytest

from xtts.trainer.doctor import checks
from xtts.trainer.doctor.cli import main
from xtts.trainer.doctor.results import Problem, Report


@pytest.fixture(scope="session")
def examined(micro_options, call, workload):
    """(exit code, JSON) of a whole check: two faults of the configuration, and a wasteful cache."""
    options = [*micro_options, "--set", "shapes.buckets=4", "--set", "shapes.max_mel_frames=60", "--steps", 3]
    code, out, _ = call(main, *options, "--json")
    return code, json.loads(out)


def test_every_section_measured_something(examined):
    facts = {name: section["facts"] for name, section in examined[1]["sections"].items()}
    assert list(facts) == ["environment", "config", "data", "steps"]
    assert facts["environment"]["xla"]["works"]
    assert 1 << 18 < facts["config"]["memory"]["step_bytes"] < facts["config"]["memory"]["available_bytes"]
    assert 0 < facts["data"]["load time"]["mean"] <= 2 * facts["data"]["load time"]["p95"]
    assert 0 <= facts["data"]["input wait"] < 1
    assert 0 < facts["steps"]["step time"]["p50"] <= facts["steps"]["step time"]["p95"]
    assert facts["steps"]["step time"]["steps"] == 3
    assert facts["steps"]["traces"] == 1


def test_faults_of_the_configuration_are_found(examined):
    code, report = examined
    assert (code, report["healthy"]) == (1, False)
    assert report["sections"]["config"]["facts"]["features"] == ["shapes.buckets", "shapes.max_mel_frames"]
    what = "\n".join(problem["what"] for problem in report["advice"])
    assert "shapes.buckets is 4, the cache was built with 1" in what
    assert "shapes.max_mel_frames 60 rejects" in what
    assert "36% of every step is padding" in what
    advised = [(problem["setting"], problem["value"]) for problem in report["advice"] if problem["setting"]]
    assert advised[:2] == [("shapes.buckets", 1), ("shapes.max_mel_frames", None)]
    assert report["advice"][0]["help"] == "docs/troubleshooting.md#other-cache-settings"


def test_a_problem_names_its_page_and_without_one_the_exit_code_is_0(micro_options, call, monkeypatch):
    report = Report(config=([], []))
    monkeypatch.setattr(checks, "run_checks", lambda *_, **__: report)
    out = call(main, *micro_options).succeeded()
    assert "✓ config" in out
    assert "advice  none: nothing slows the training down" in out
    report.add("data", [Problem(name="slow-loading", what="slow to read", cause="the disk")])
    assert "docs/troubleshooting.md#slow-loading" in call(main, *micro_options).out


@pytest.mark.parametrize(("arguments", "message"), [
    (("--cache", "nowhere"), "nowhere/cache.json: no such folder, expected a cache"),
    (("--config", "tinny"), "tinny: cannot be read"), (("--cache", "damaged"), "cannot be read"),
])
def test_what_cannot_be_examined_is_unusable_and_left_alone(call, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "cache.json").write_text("{")
    code, out, err = call(main, *arguments)
    assert code == 2
    assert message in err
    assert not out
    assert set(os.listdir(tmp_path / "damaged")) <= {".readers", "cache.json"}
