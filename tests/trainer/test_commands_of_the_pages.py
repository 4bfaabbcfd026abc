"""The commands that README and docs/ show do what they promise, one after another in one folder."""

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from test_docs import ROOT, commands

ELSEWHERE = (
    "s3://", "--engine ray", "LJSpeech", "--judge", "cv-corpus", "corpora.yaml", "people.yaml", "my-voice", "my.csv",
    "vits", "sample-corpus", "--speaker-wav", "serve", "vocoder", "crops", "runs/NAME", "transcribe",
    "RUN --format piper",
)
"""Of corpora, machines and models that are missing, and what runs on; `xtts-train` and make
are in other tests."""
LINES = [line for line in commands() if line.startswith(("xtts-precompute", "xtts-synth"))]
LINES = [line for line in LINES if not any(word in line for word in ELSEWHERE)]


@pytest.mark.long
def test_the_commands_of_the_pages_run(finished_run, tone_corpus, tmp_path):
    for name in ("my-corpus", "corpus"):
        tone_corpus(tmp_path / name, 24, seconds=(1.5, 2.0))
    (tmp_path / "runs").mkdir()
    for name in ("RUN", "runs/tiny-1a2b3c4d"):
        (tmp_path / name).symlink_to(finished_run[0])
    (tmp_path / "voices").symlink_to(ROOT / "voices")
    (tmp_path / "LINES.txt").write_text("One line.\nAnother line.\n")
    (tmp_path / "ABOUT.md").write_text("Spoken by nobody.\n")
    assert len(LINES) > 15
    for line in LINES:
        program, *words = shlex.split(line)
        shutil.rmtree(tmp_path / "voice", ignore_errors=True)
        command = [Path(sys.executable).with_name(program), *words]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, errors="replace", check=False)
        assert done.returncode == 0, f"{line}: {done.stderr}"
    assert {"out.wav", "out.mp3", "folder", "report.html"} <= {path.name for path in tmp_path.iterdir()}
