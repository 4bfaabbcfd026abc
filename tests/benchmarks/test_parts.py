"""What the benchmarks count, simulate and compare with, without measuring."""

import importlib
from pathlib import Path

import numpy as np
import pytest

from xtts.shared.audio.decode import decode
from xtts.shared.audio.mel import log_mel
from xtts.shared.audio.mel_profiles import MEL_PROFILES
from xtts.shared.cache.bucket_shapes import best_padded_lengths, padding_efficiency
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


def test_the_lengths_are_those_of_the_corpus():
    from setup.ljspeech_corpus import read_lengths

    frames = [frames for frames, _ in read_lengths(262)]
    assert (max(frames), len(frames)) == (869, 262)
    assert padding_efficiency(frames, best_padded_lengths(frames, 1)) == pytest.approx(0.649, abs=0.003)
    assert padding_efficiency(frames, best_padded_lengths(frames, 8)) == pytest.approx(0.929, abs=0.003)
    assert max(frames for frames, _ in read_lengths(40, longest=96)) == 96


def test_the_other_pipelines_pad_to_the_longest_clip_of_the_batch():
    from training_parts.pipelines import PROFILE, pad

    clips = [(np.arange(1, n + 1, dtype=np.int32), np.ones((10 * n, 80), np.float32)) for n in (2, 3)]
    tokens, mel, token_length, mel_length = pad(clips)
    assert tokens.tolist() == [[1, 2, 0], [1, 2, 3]]
    assert mel.shape == (2, 30, 80)
    assert (mel[0, 20:] == np.float32(PROFILE.silence)).all()
    assert (mel[0, :20] == 1).all()
    assert (token_length.tolist(), mel_length.tolist()) == ([2, 3], [20, 30])


def test_a_broken_gate_is_said():
    from driver_cost import cost_lines

    figures = {"microseconds": 10.04, "bytes": 80.1, "table": [{"clips": 1}]}
    lines = ["10.0 microseconds a clip, at most 10: BROKEN", "80.1 bytes a clip, at most 80: BROKEN"]
    assert cost_lines(figures)[:2] == lines


def test_scale_plans_and_joins_many_clips_and_calculates_the_rest():
    import scale

    assert scale.simulate_plan(50_000, 32)["shards"] > 100
    assert scale.simulate_join(50_000)["changed"] == 500
    options = scale.argparse.Namespace(
        rows=1_000_000, shard_mb=256, frames_per_second=40_000, memory_gib=4.0, driver_clips=[1, 2]
    )
    first = scale.requests(options)["table"][0]
    assert first["dollars"] == pytest.approx(5_000 * 0.0004 + first["PUT and LIST"] / 1000 * 0.005, abs=0.01)
    assert scale.reading(options)["table"][-1]["MB/s"] == pytest.approx(8 * 40_000 * 160 / 0.93 / 1e6, rel=0.01)
    driver = {
        "command_microseconds": 8.0, "command_bytes": 64.0, "worker_cores_that_the_command_keeps_busy": 250,
        "bytes_of_the_worker_that_reads_the_list": 1024.0,
    }  # fmt: skip
    ends = {row["what ends"]: row["at"] for row in scale.limits(driver, options)["table"]}
    assert ends["the command needs 4 GiB (clips), at 64 bytes a clip"] == 2**26
    assert ends["the worker that reads the list needs 16 GiB (clips)"] == 2**24


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
