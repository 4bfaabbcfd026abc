"""Every test file is run: pytest silently skips folders by name."""

from pathlib import Path

import pytest

TESTS = Path(__file__).parent


def left_out(config: pytest.Config, tests: Path) -> list[str]:
    """The test files below a folder that pytest would not collect, because of their own name or a folder's."""
    return [
        file.relative_to(tests).as_posix()
        for file in sorted(tests.rglob("test_*.py"))
        for path in (*reversed(file.relative_to(tests).parents[:-1]), file.relative_to(tests))
        if config.hook.pytest_ignore_collect(collection_path=tests / path, config=config)
    ]


def test_every_test_file_is_collected(request):
    assert left_out(request.config, TESTS) == []


@pytest.mark.parametrize("folder", ["build", "dist", "node_modules", "venv"])
def test_a_folder_of_any_name_is_collected(request, tmp_path, folder):
    """151 tests in a folder called `build` went unrun for a day."""
    (tmp_path / folder / "inner").mkdir(parents=True)
    (tmp_path / folder / "inner" / "test_it.py").touch()
    assert left_out(request.config, tmp_path) == []
