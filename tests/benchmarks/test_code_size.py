"""The code is measured: on a small tree written here, and on one clip through the build."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def measures(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    from code_measures import hops, imports, sizes

    return sizes, imports, hops


@pytest.fixture
def tree(tmp_path):
    modules = {
        "shared/errors.py": "def fail(where, *, found): pass\n",
        "precompute/__init__.py": "",
        "precompute/cli.py": "from xtts.precompute.build.plan import plan\nfrom xtts.shared.errors import fail\n"
        "@click.command()\ndef main(a, b, c, d):\n    pass\n",
        "precompute/build/__init__.py": "",
        "precompute/build/plan.py": "def plan(self, clips):\n    from xtts.precompute.build import write\n",
        "precompute/build/write.py": "def write(a, b, c): pass\n",
        "trainer/one.py": "def one():\n    return 1\n",
    }
    for name, text in modules.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_files_and_functions_are_counted(measures, tree):
    sizes, _, _ = measures
    rows = {row["folder"]: row for row in sizes.folder_rows(tree)}
    assert (rows["precompute/"]["files"], rows["precompute/"]["most_in_one"]) == (5, 2)
    assert rows["precompute/"]["longest_file"] == "precompute/cli.py, 5"
    functions = {row["stage"]: row for row in sizes.function_rows(tree)}
    assert functions["precompute"]["most_parameters"] == "write.py write, 3", "options of a command do not count"
    assert functions["trainer"]["median_lines"] == 2


def test_the_longest_chain_of_imports_is_found(measures, tree):
    _, imports, _ = measures
    assert imports.longest_chain(tree, "precompute") == ["cli", "build.plan", "build.write"]
    assert imports.longest_chain(tree, "shared") == ["errors"]


def test_the_functions_that_a_clip_passes_in_the_build(measures, tmp_path):
    _, _, hops = measures
    passed = hops.build_hops(ROOT, tmp_path)
    assert {"precompute/features/extract.py write_shard", "shared/audio/mel.py log_mel"} <= passed
    assert "precompute/build/commit.py commit" not in passed, "it moves files and sees no clip"
