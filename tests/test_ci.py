"""Which long tests `.ci/run` chooses."""

import runpy
from pathlib import Path

import pytest

CHOICE = runpy.run_path(str(Path(__file__).parents[1] / ".ci" / "long_tests.py"))


@pytest.mark.parametrize(
    ("changed", "tests"),
    [
        ("trainer/run/trainer.py", "tests/trainer/run"),
        ("trainer/vocoders/onnx_vocoder.py", "tests/trainer/vocoders"),
        ("trainer/cli.py", "tests/trainer"),
        ("shared/errors.py", "tests/shared"),
        ("precompute/pipeline/gone_folder/x.py", "tests/precompute/pipeline"),
        ("tests/trainer/run/test_devices.py", "tests/trainer/run"),
        ("tests/conftest.py", "tests"),
        ("tests/test_collection.py", "tests/test_collection.py"),
        ("benchmarks/setup/commands.py", "tests/benchmarks"),
        ("pyproject.toml", "tests/test_installed_wheel.py"),
        ("docs/design.md", ""),
    ],
)
def test_a_changed_file_has_the_folder_of_its_folder(changed, tests):
    assert CHOICE["folder_of"](changed) == tests


def test_a_folder_is_chosen_once_and_with_all_below_it():
    changes = ["trainer/run/a.py", "trainer/run/b.py", "trainer/cli.py", "README.md"]
    assert CHOICE["chosen"](changes) == {"tests/trainer": "trainer/cli.py"}
    assert CHOICE["chosen"](["README.md"]) == {}
