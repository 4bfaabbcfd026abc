"""The code is measured, on a small tree written here."""

import pytest


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


def test_files_and_functions_are_counted(tree):
    from code_measures.sizes import folder_rows, function_rows

    rows = {row["folder"]: row for row in folder_rows(tree)}
    assert (rows["precompute/"]["files"], rows["precompute/"]["most_in_one"]) == (5, 2)
    assert rows["precompute/"]["longest_file"] == "precompute/cli.py, 5"
    functions = {row["stage"]: row for row in function_rows(tree)}
    assert functions["precompute"]["most_parameters"] == "write.py write, 3", "options of a command do not count"
    assert functions["trainer"]["median_lines"] == 2


def test_the_longest_chain_of_imports_is_found(tree):
    from code_measures.imports import longest_chain

    assert longest_chain(tree, "precompute") == ["cli", "build.plan", "build.write"]
    assert longest_chain(tree, "shared") == ["errors"]
