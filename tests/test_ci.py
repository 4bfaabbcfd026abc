"""Which long tests `.ci/run` chooses, and which commits `make check` refuses."""

import runpy
import subprocess
from pathlib import Path

import pytest

CI = Path(__file__).parents[1] / ".ci"
long_tests = runpy.run_path(str(CI / "long_tests.py"))["long_tests"]
problems = runpy.run_path(str(CI / "commits.py"))["problems"]


@pytest.mark.parametrize(("changed", "asked", "not_asked"), [
    ("trainer/run/gone.py", "trainer/run/test_two_devices.py", "trainer/loop/test_compiler.py"),
    ("trainer/cli.py", "trainer/test_commands_of_the_pages.py", "trainer/run/test_two_devices.py"),
    ("shared/config.py", "precompute/workers/test_ray_pool.py", "trainer/run/test_two_devices.py"),
    ("precompute/pipeline/gone_folder/x.py", "precompute/pipeline/test_crash_safety.py", "test_examples.py"),
    ("tests/trainer/run/test_devices.py", "trainer/run/test_devices.py", "trainer/run/test_two_devices.py"),
    ("tests/trainer/server_process.py", "trainer/serve/test_real_servers.py", "trainer/run/test_two_devices.py"),
    ("benchmarks/setup/commands.py", "benchmarks/test_programs.py", "test_examples.py"),
    ("pyproject.toml", "test_installed_wheel.py", "test_examples.py"),
])  # fmt: skip
def test_a_change_asks_for_the_long_tests_that_import_it_or_mirror_its_folder(changed, asked, not_asked):
    reasons = long_tests([changed])
    assert reasons[f"tests/{asked}"] == changed
    assert f"tests/{not_asked}" not in reasons


def test_pages_and_fixtures_ask_for_no_long_test():
    assert long_tests(["docs/design.md", "tests/conftest.py"]) == {}


@pytest.fixture
def commit(tmp_path):
    """`commit("Subject", "body")` in a repository that passed its long tests at the first one."""

    def git(*words):
        line = ["git", "-c", "user.name=a", "-c", "user.email=a", "-c", "init.defaultBranch=main", *words]
        return subprocess.run(line, cwd=tmp_path, check=True, capture_output=True, text=True).stdout.strip()

    def make(*message):
        git("commit", "--allow-empty", *(word for text in message for word in ("-m", text)))

    git("init")
    make("First")
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".ci" / "long-passed").write_text(git("rev-parse", "HEAD"))
    make.git = git
    return make


def test_a_long_subject_and_a_missing_body_are_told_in_a_line_each(commit, tmp_path):
    commit("a" * 72, "It is why.")
    assert problems(tmp_path) == []
    commit("b" * 73, "It is why.")
    commit("No reason")
    bodiless, long = problems(tmp_path)
    sha, above = commit.git("log", "-2", "--format=%h").split()
    assert bodiless.startswith(f"commit {sha} (No reason): no body; fix: ")
    assert long.startswith(f"commit {above} ({'b' * 73}): 73 characters; fix: ")


def test_merges_and_what_has_landed_are_passed_over(commit, tmp_path):
    commit("No reason")
    commit.git("switch", "-c", "other", "HEAD~")
    commit("Other", "It is why.")
    assert problems(tmp_path) == []
    commit.git("merge", "main", "-m", "Merge")
    assert len(problems(tmp_path)) == 1
    commit.git("update-ref", "refs/remotes/origin/main", "main")
    assert problems(tmp_path) == []
    commit("Again no reason")
    assert len(problems(tmp_path)) == 1


def test_what_is_older_than_the_check_is_passed_over_and_a_shallow_clone_misses_no_history(commit, tmp_path):
    (tmp_path / ".ci" / "commits.py").touch()
    commit.git("add", ".")
    commit("Check commits")
    commit("No reason")
    clone = tmp_path / "clone"
    commit.git("clone", "--depth", "1", tmp_path.as_uri(), str(clone))
    commit.git("-C", str(clone), "remote", "remove", "origin")
    assert problems(clone) == []
    assert len(problems(tmp_path)) == 1
