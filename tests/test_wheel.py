"""The wheel holds every package of the tree, under the names it is imported by."""

import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
STAGES = {"configs": "*.yaml", "precompute": "*.py", "shared": "*.py", "trainer": "*.py"}


@pytest.fixture(scope="module")
def wheel_names(wheel):
    return set(zipfile.ZipFile(wheel).namelist())


def test_every_file_of_every_stage_is_in_the_wheel(wheel_names):
    wanted = {
        f"xtts/{path.relative_to(ROOT).as_posix()}"
        for stage, pattern in STAGES.items()
        for path in (ROOT / stage).rglob(pattern)
    }
    wanted.add("xtts/precompute/view/report.html")
    wanted |= {f"xtts/trainer/serve/page/{name}" for name in ("index.html", "page.css", "page.js")}
    wanted |= {f"xtts/precompute/sample/languages/{code}.txt" for code in ("cmn", "de", "es", "fa", "hi", "ru")}
    assert len(wanted) > 30
    assert wanted <= wheel_names


def test_nothing_but_the_package_is_in_the_wheel(wheel_names):
    tops = {name.split("/")[0] for name in wheel_names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"xtts"}
