"""The command, with steps that this process compiled; seeded faults, each found and named by its check."""

import ast
import json
import os
import re
from pathlib import Path

import numpy as np
import pytest
from cache_files import build_cache, index_bytes

from xtts.shared.cache.stats import corpus_stats
from xtts.shared.config_files import load_config
from xtts.shared.errors import LockstepError
from xtts.trainer.doctor import checks, settings
from xtts.trainer.doctor import environment as environment_module
from xtts.trainer.doctor.checks import step_times
from xtts.trainer.doctor.cli import main
from xtts.trainer.doctor.environment import environment
from xtts.trainer.doctor.results import HELP, Fact, Problem
from xtts.trainer.doctor.settings import load_setup
from xtts.trainer.loop.chunk import CallResult


@pytest.mark.long
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


def test_steps_that_wait_for_their_batches(workload, only, problems):
    def checked(waiting):
        seconds = np.array([[0.0, waiting, 0.1 - waiting]] * 8)
        metrics = np.ones([8, len(workload.loops.step_functions.metrics.step)], np.float32)
        return step_times(workload.loops, [CallResult(metrics, seconds, np.zeros(8, np.int32), None, wall=0.8)])

    problem = only(checked(0.05))
    assert problem.what == "steps wait 50% of their time for a batch"
    assert problem.gain == "2.00 times the steps a second"
    assert not problems(checked(0.01))


def test_a_gpu_that_tensorflow_does_not_see(monkeypatch, only, problems):
    card = {"name": "H200", "driver_version": "570.1", "memory.total": "143771"}
    monkeypatch.setattr(environment_module, "driver", lambda: card)
    problem = only(environment())
    assert problem.what == "TensorFlow sees no GPU, although H200 is present with driver 570.1"
    monkeypatch.setattr(environment_module, "driver", lambda: None)
    assert not problems(environment())


ROOT = Path(__file__).parents[3]


def problem_names():
    """The constant `name=` of every `Problem(...)` in the doctor's code."""
    for path in sorted((ROOT / "trainer" / "doctor").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Problem":
                yield next(ast.literal_eval(keyword.value) for keyword in node.keywords if keyword.arg == "name")


def test_every_problem_has_a_section_in_the_troubleshooting_page():
    names = set(problem_names())
    page = (ROOT / HELP).read_text(encoding="utf-8")
    _, _, of_the_doctor = page.partition("\n## What xtts-doctor finds\n")
    sections = {title.lower().replace(" ", "-") for title in re.findall(r"^### (.+)$", of_the_doctor, re.MULTILINE)}
    assert len(names) > 3
    assert sections == names, f"sections of {HELP} and names of problems differ: {sorted(sections ^ names)}"


def test_padding_names_the_bucket_count_that_fixes_it(kept_row, tmp_path, setup, only):
    frames = np.random.default_rng(0).integers(100, 870, 2000).tolist()
    index = tmp_path / "index.parquet"
    index.write_bytes(index_bytes([kept_row(str(number), 9, length) for number, length in enumerate(frames)]))
    stats = corpus_stats(index)
    statistics = setup.spec.statistics.model_copy(update={"fill": stats.fill[1]})
    wasteful = setup.spec.model_copy(update={"buckets": setup.spec.buckets[:1], "statistics": statistics})
    problem = only(settings.padding(stats, wasteful))
    buckets = min(n for n, fill in stats.fill.items() if fill >= 0.97 * stats.fill[12])
    assert problem.remedy == f"set shapes.buckets to {buckets}, then run xtts-precompute build again"
    assert problem.gain.startswith(f"{stats.fill[buckets] / stats.fill[1]:.2f} times the useful frames")


def test_settings_that_disagree_with_the_cache_are_unusable_as_in_training(tiny_cache, micro):
    with pytest.raises(LockstepError, match=r"built with shapes.buckets = 2, expected 5; run xtts-precompute build"):
        load_setup(["tiny"], [*micro, "shapes.buckets=5"], {}, tiny_cache)


def test_unpadded_clips_are_unusable(tiny_corpus, tmp_path):
    flags = {"shapes.pad_to_fixed_length": False, "shapes.buckets": 1}
    build_cache(tiny_corpus, tmp_path / "features", load_config("tiny", flags=flags))
    with pytest.raises(LockstepError, match=r"expected shapes\.pad_to_fixed_length: true; run xtts-"):
        load_setup(["tiny"], [], flags, tmp_path / "features")
