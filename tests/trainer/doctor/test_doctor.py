"""The command on healthy and faulty set-ups, with steps that this process compiled."""

import json
import os

import pytest

from xtts.trainer.doctor import checks
from xtts.trainer.doctor.cli import main
from xtts.trainer.doctor.results import Fact, Problem


def test_the_page_measures_the_steps_and_names_what_is_wrong(micro_options, call):
    code, out, _ = call(main, *micro_options, "--steps", 3, "--json")
    page = json.loads(out)
    facts, (padding,) = page["facts"], page["problems"]  # of one shape
    assert 1 << 18 < facts["memory"]["step_bytes"] < facts["memory"]["available_bytes"]
    assert 0 <= facts["input wait"] < 1
    assert 0 < facts["step time"]["p50"] <= facts["step time"]["p95"]
    assert facts["step time"]["steps"] == 3
    assert (code, page["healthy"]) == (1, False)
    assert padding["what"] == "36% of every step is padding"
    assert padding["help"] == "docs/troubleshooting.md#padding"


def test_without_a_problem_the_exit_code_is_0_and_with_one_the_page_says_where_it_is_explained(
    micro_options, call, monkeypatch
):
    findings = [Fact(name="device", value="CPU", text="CPU, 2 cores")]
    monkeypatch.setattr(checks, "run_checks", lambda *_, **__: findings)
    out = call(main, *micro_options).succeeded()
    assert "device  CPU, 2 cores" in out
    assert "✓ nothing slows the training down" in out
    findings.append(Problem(name="input-wait", what="slow to read", cause="the disk", remedy="copy it"))
    assert "docs/troubleshooting.md#input-wait" in call(main, *micro_options).out


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
