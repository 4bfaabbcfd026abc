"""What the benchmarks count, simulate and compare with, without measuring."""

import importlib
from pathlib import Path

import numpy as np
import pytest

from xtts.shared.audio.decode import decode
from xtts.shared.audio.mel import log_mel
from xtts.shared.audio.mel_profiles import MEL_PROFILES
from xtts.shared.cache.cache_spec import load_spec

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
LOADS_TENSORFLOW = {"export_step", "step_cost", "training"}
"""With settings of their own for the process."""
PROGRAMS = sorted({path.stem for path in BENCHMARKS.glob("*.py")} - LOADS_TENSORFLOW)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_still_finds_what_it_imports(program, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", [f"{program}.py", "--help"])
    with pytest.raises(SystemExit, match="0"):
        importlib.import_module(program).main()
    assert f"usage: {program}.py" in capsys.readouterr().out


def test_librosa_is_asked_for_the_same_mel(tiny_corpus, tiny_cache):
    from audio_source import librosa_mel

    wav = tiny_corpus / "wavs" / "tone-0003.wav"
    found = librosa_mel(str(wav), load_spec(tiny_cache))
    np.testing.assert_allclose(found, log_mel(decode(wav, rate=22_050), MEL_PROFILES["hifigan"]), atol=0.02)


def cells(line):
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_every_gpu_trains_the_same_frames(monkeypatch, capsys):
    import schedules

    monkeypatch.setattr("sys.argv", ["schedules.py", "--sizes", "normal", "--frames-per-second", "43000"])
    schedules.main()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("13,100 clips, ")
    rows = [dict(zip(cells(lines[2]), cells(line), strict=True)) for line in lines[4:]]
    assert [row["GPU"] for row in rows] == ["-", "a100", "h200", "rtx3060", "rtx4090"]
    assert {row["epochs"] for row in rows} == {"500"}
    for row in rows:
        steps, clips = int(row["steps"].replace(",", "")), float(row["clips a step"])
        assert steps * clips / 13_100 == pytest.approx(500, rel=0.01)
        assert float(row["hours"]) == pytest.approx(24.0, abs=0.1)  # as the column beside says
