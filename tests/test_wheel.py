"""The wheel holds every package of the tree, under the names it is imported by."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
STAGES = {"configs": "*.yaml", "precompute": "*.py", "shared": "*.py", "trainer": "*.py"}


@pytest.fixture(scope="module")
def wheel_names(tmp_path_factory):
    out = tmp_path_factory.mktemp("wheel")
    source = out / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md"):
        (source / name).write_bytes((ROOT / name).read_bytes())
    for stage in STAGES:
        for path in (ROOT / stage).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                target = source / path.relative_to(ROOT)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(path.read_bytes())
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(source)]
    subprocess.run(command, check=True, capture_output=True)
    (wheel,) = out.glob("*.whl")
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
