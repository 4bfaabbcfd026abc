"""Which long tests `.ci/run` chooses, and which commits `make check` refuses."""

import runpy
import subprocess
from pathlib import Path

import pytest

CI = Path(__file__).parents[1] / ".ci"


@pytest.mark.parametrize(("changed", "asked"), [
    ("trainer/run/gone.py", "trainer/run/test_two_devices.py"),
    ("trainer/loop/program_loop.py", "trainer/run/test_exported_steps.py"),
    ("trainer/models/vocoder/vocoder.py", "trainer/run/test_vocoder_run.py"),
    ("benchmarks/bench.py", "benchmarks/test_benchmarks.py"),
    ("tests/trainer/server_process.py", "trainer/serve/test_real_servers.py"),
    ("tests/trainer/serve/break_off.js", "trainer/serve/test_serve_page.py"),
])
def test_a_change_asks_for_the_long_tests_that_import_it_or_mirror_its_folder(changed, asked):
    reasons = runpy.run_path(str(CI / "long_tests.py"))["long_tests"]([changed, "docs/design.md"])
    assert reasons[f"tests/{asked}"] == changed
    assert "tests/precompute/workers/test_ray_pool.py" not in reasons


def test_a_long_subject_and_a_missing_body_are_refused(tmp_path):
    def git(*words):
        line = ["git", "-c", "user.name=a", "-c", "user.email=a", *words]
        return subprocess.run(line, cwd=tmp_path, check=True, capture_output=True, text=True).stdout.strip()

    git("init")
    for message in (["First"], ["a" * 72, "-m", "It is why."], ["b" * 73, "-m", "It is why."], ["No reason"]):
        git("commit", "--allow-empty", "-m", *message)
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".ci" / "long-passed").write_text(git("rev-parse", "HEAD~3"))
    bodiless, long = runpy.run_path(str(CI / "commits.py"))["problems"](tmp_path)
    assert "(No reason): no body; fix: " in bodiless
    assert f"({'b' * 73}): 73 characters; fix: " in long
