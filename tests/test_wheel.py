"""The wheel holds every package of the tree, under the names it is imported by, and nothing else."""

import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
STAGES = {"configs": "*.yaml", "precompute": "*.py", "shared": "*.py", "trainer": "*.py"}
DATA = [
    "precompute/view/report.html", "precompute/sample/languages/*.txt", "trainer/serve/page/*",
    "trainer/evaluation/listen.html", "voices/*.py",
    "voices/base/*", "voices/speaker-encoder/*", "voices/vocoder/facts.json",
]


def test_every_file_of_every_stage_is_in_the_wheel_and_nothing_else(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    code = [path for stage, pattern in STAGES.items() for path in (ROOT / stage).rglob(pattern)]
    data = [path for pattern in DATA for path in ROOT.glob(pattern)]
    assert len(data) >= 10
    wanted = {f"xtts/{path.relative_to(ROOT).as_posix()}" for path in code + data}
    assert sorted(wanted - names) == []
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"xtts"}
    page = (ROOT / "docs" / "installation.md").read_text(encoding="utf-8")
    assert f"pip install 'dist/{wheel.name}[" in page, wheel.name
