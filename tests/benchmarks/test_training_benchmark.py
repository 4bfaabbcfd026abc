"""The benchmark of stage 2 runs, and says what it measured; how fast is for the machine that it is meant for."""

import contextlib
import io
import json
import sys
from pathlib import Path

import forked_program
import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
MICRO = [
    "model.text_width=16", "model.text_blocks=1", "model.text_heads=2", "model.prenet_layers=1",
    "model.duration_width=16", "model.duration_layers=1", "model.decoder_width=16", "model.decoder_blocks=1",
    "model.decoder_levels=[]", "training.batch_size=3",
]  # fmt: skip


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    """(figures, Markdown) of a run with one shape: two compiles in all, in two parts, both in this process."""
    folder, screen = tmp_path_factory.mktemp("benchmark"), io.StringIO()
    command = ["training.py", "--only", *"abcde", "--buckets", 1, "--clips", 12]
    command += ["--longest", 96, "--steps", 4, "--dynamic-batches", 1, "--rounds", 1, "--seconds", 0.1]
    command += ["--work", folder / "work", "--out", folder / "figures.json"]
    command += [part for value in MICRO for part in ("--set", value)]
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(screen):
        patch.syspath_prepend(str(BENCHMARKS))
        patch.setenv("TF_XLA_FLAGS", "")  # which the benchmark takes away
        patch.setattr(sys, "argv", [*map(str, command)])
        import training

        def part(_, *arguments, shown):
            patch.setattr(sys, "argv", ["training.py", *map(str, arguments)])
            training.main()
            patch.setattr(sys, "argv", [*map(str, command)])

        patch.setattr(training, "script", part)
        patch.setattr("setup.commands.subprocess", forked_program)  # of the input pipelines
        training.main()
    return json.loads((folder / "figures.json").read_text()), screen.getvalue()


def test_it_says_what_it_ran_on_and_with(outcome):
    figures, screen = outcome
    assert figures["machine"]["cores"] >= 1
    assert figures["machine"]["versions"]["tensorflow"]
    assert figures["settings"]["clips"] == 12
    assert figures["settings"]["quick"] is False
    assert list(figures["sections"]) == list("abcde")
    assert [line[4] for line in screen.splitlines() if line.startswith("### ")] == list("abcde")


def test_ratios_come_first_and_agree_with_the_table(outcome):
    sections = outcome[0]["sections"]
    dynamic, locked = sections["a"]["table"]
    assert list(sections["a"])[1] == "times_faster"
    assert sections["a"]["times_faster"] == pytest.approx(dynamic["mean_seconds"] / locked["mean_seconds"])
    assert (dynamic["traces"], locked["traces"]) == (1, 1)
    assert (dynamic["batches"], locked["batches"]) == (1, 4)
    assert locked["compiled_before_step_1_seconds"] > dynamic["compiled_before_step_1_seconds"] == 0
    assert sections["e"]["times_one_shape"] == 1
    assert sections["e"]["table"][0]["useful_frames_per_second"] > 0
    assert 0 <= sections["d"]["input_wait_share"] <= 1
    assert sections["b"]["std_over_mean_one_shape"] == sections["b"]["std_over_mean"] >= 0


def test_every_pipeline_takes_part(outcome):
    section = outcome[0]["sections"]["c"]
    rows = {row["pipeline"]: row for row in section["table"]}
    assert {"lockstep", "tf.numpy_function", "from_generator"} < set(rows)
    assert all(row["examples_per_second"] > 0 for row in rows.values())
    ratio = rows["lockstep"]["examples_per_second"] / rows["from_generator"]["examples_per_second"]
    assert section["times_from_generator"] == pytest.approx(ratio)
    assert "memcpy" not in rows
    spent = rows["lockstep"]["cpu_microseconds_an_example"]
    assert section["times_memcpy"] == pytest.approx(spent / section["memcpy_microseconds_an_example"])


@pytest.fixture
def modules(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))


def test_the_lengths_are_those_of_the_corpus(modules):
    from setup.ljspeech_corpus import read_lengths

    from xtts.shared.cache.bucket_shapes import best_padded_lengths, padding_efficiency

    frames = [frames for frames, _ in read_lengths(262)]
    assert (max(frames), len(frames)) == (869, 262)
    assert padding_efficiency(frames, best_padded_lengths(frames, 1)) == pytest.approx(0.649, abs=0.003)
    assert padding_efficiency(frames, best_padded_lengths(frames, 8)) == pytest.approx(0.929, abs=0.003)
    assert max(frames for frames, _ in read_lengths(40, longest=96)) == 96


def test_the_other_pipelines_pad_to_the_longest_clip_of_the_batch(modules):
    from training_parts.pipelines import PROFILE, pad

    clips = [(np.arange(1, n + 1, dtype=np.int32), np.ones((10 * n, 80), np.float32)) for n in (2, 3)]
    tokens, mel, token_length, mel_length = pad(clips)
    assert tokens.tolist() == [[1, 2, 0], [1, 2, 3]]
    assert mel.shape == (2, 30, 80)
    assert (mel[0, 20:] == np.float32(PROFILE.silence)).all()
    assert (mel[0, :20] == 1).all()
    assert (token_length.tolist(), mel_length.tolist()) == ([2, 3], [20, 30])
