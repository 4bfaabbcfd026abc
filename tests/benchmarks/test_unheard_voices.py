"""The benchmark of voices never heard: its distance tells voices apart and can fail, and the whole of it runs."""

import json
from pathlib import Path

import forked_program
import numpy as np
import pytest

from xtts.shared.audio.mel_profiles import mel_profile
from xtts.trainer.evaluation.figures import distance_table

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
PROFILE = mel_profile("hifigan")
MICRO = """
model: {size: tiny, text_width: 16, text_blocks: 1, text_heads: 2, prenet_layers: 1, duration_width: 16,
  decoder_width: 16, decoder_blocks: 1, decoder_levels: [], voice_width: 16, voice_layers: 1, voice_frames: 48}
shapes: {buckets: 1}
training: {batch_size: 3}
"""
VOWELS = ((700, 1200, 2600), (300, 2200, 3000), (350, 800, 2500), (500, 1800, 2500))
"""Formants, Hz."""


@pytest.fixture
def distance(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from voice_measures import voice_distance

    return voice_distance


def utterance(random, pitch, tract):
    """Six vowels with a wandering pitch, Hz, and formants moved by `tract`: float32[S], 0.9 s."""
    rate, size = PROFILE.sample_rate, 3300
    contour = pitch * 2 ** np.interp(np.arange(6 * size), np.arange(7) * size, random.normal(0, 0.1, 7))
    phase, samples = 2 * np.pi * np.cumsum(contour) / rate, np.zeros(6 * size)
    for part in range(6):
        inside = slice(part * size, (part + 1) * size)
        formants = tract * np.array(VOWELS[random.integers(len(VOWELS))])
        for harmonic in range(1, 30):
            loud = (1 / (1 + ((harmonic * pitch - formants) / 120) ** 2)).sum()
            samples[inside] += loud * np.sin(harmonic * phase[inside])
    return (0.3 * samples / np.abs(samples).max()).astype(np.float32)


@pytest.fixture(scope="module")
def voices():
    """Nine utterances of each of four voices, by (pitch, tract)."""
    random = np.random.default_rng(4)
    made = ((110, 1.0), (170, 1.0), (110, 1.2), (170, 1.2))
    return {str(voice): [utterance(random, *voice) for _ in range(9)] for voice in made}


def test_voices_of_another_pitch_or_other_formants_are_told_apart(distance, voices):
    found = {name: np.stack([distance.describe_samples(x, PROFILE) for x in some]) for name, some in voices.items()}
    pitch = {name: 2 ** np.median(some[:, 13]) for name, some in found.items()}
    for name, hz in pitch.items():
        assert hz == pytest.approx(float(name[1:4]), rel=0.1)
    enrolment, tests = ({name: some[part] for name, some in found.items()} for part in (slice(5), slice(5, 9)))
    space = distance.VoiceSpace.fit(enrolment)
    assert distance.share_right(distance.nearest(space, tests, enrolment)) == 1.0
    chance = [distance.share_right(distance.nearest(space, tests, distance.shuffled(enrolment, s))) for s in range(40)]
    assert 0.1 < np.mean(chance) < 0.4  # of four
    # By the pitch alone two pairs of the four voices are alike.
    alone = [{name: some[:, 13:] for name, some in clips.items()} for clips in (tests, enrolment)]
    assert distance.share_right(distance.nearest(distance.VoiceSpace.fit(alone[1]), *alone)) < 0.9


def test_both_sides_are_heard_through_the_same_vocoder(distance, voices):
    from xtts.shared.audio.mel import log_mel

    some = next(iter(voices.values()))[:2]
    mels = [log_mel(samples, PROFILE) for samples in some]
    found = distance.describe_all({"one": mels}, PROFILE)["one"]
    np.testing.assert_array_equal(found[1], distance.describe(mels[1], PROFILE))
    assert found.shape == (2, 15)
    assert 2 ** found[0, 13] == pytest.approx(110, rel=0.15)


def test_nearest_counts_which_voice_is_the_nearest(distance):
    space = distance.VoiceSpace(np.eye(1))
    middles = {"a": np.zeros([3, 1]), "b": np.full([3, 1], 10.0)}
    clips = {"a": np.array([[1.0], [9.0]]), "b": np.array([[8.0], [7.0]])}
    table = distance.nearest(space, clips, middles)
    assert table.tolist() == [[1, 1], [0, 2]]
    assert distance.share_right(table) == 0.75
    trained = {"c": np.full([2, 1], 4.0), "d": np.full([2, 1], 8.0)}
    likest = distance.likest(space, middles, trained)
    assert {name: clips.tolist() for name, clips in likest.items()} == {"a": [[4.0], [4.0]], "b": [[8.0], [8.0]]}
    assert distance.groups(["a", "b", "c", "d", "e"], 2) == [["a", "b"], ["c", "d"], ["d", "e"]]


def test_references_are_cut_to_their_length_and_words_are_retrieved(distance):
    from voice_measures.recordings import references
    from voice_measures.spoken_voices import retrieved

    random = np.random.default_rng(0)
    samples = [random.normal(0, 0.1, size).astype(np.float32) for size in (30_000, 50_000, 9_000)]
    pieces = references(samples, 2.0, PROFILE)
    assert [len(piece) for piece in pieces] == [44_100 // 256, 44_100 // 256]
    mels = [random.normal(-5, 2, [frames, 80]).astype(np.float32) for frames in (40, 50, 45)]
    assert distance_table(mels, mels).argmin(axis=1).tolist() == [0, 1, 2]
    assert retrieved([mels[0], mels[2]], mels).tolist() == [True, False]


@pytest.mark.long
def test_the_whole_benchmark_runs_on_a_micro_model(distance, tmp_path, monkeypatch, capfd):
    pytest.importorskip("espeakng_loader")
    import unheard_voices

    config, out = tmp_path / "micro.yaml", tmp_path / "figures.json"
    config.write_text(MICRO)
    line = ["unheard_voices.py", "--quick", "--work", tmp_path, "--out", out, "--config", config]
    line += ["--reference-seconds", 2, "--set", "shapes.buckets=1", "model.voice_latents=4"]
    monkeypatch.setattr("sys.argv", [*map(str, line)])
    monkeypatch.setattr("setup.commands.subprocess", forked_program)
    unheard_voices.main()
    figures = json.loads(out.read_text())
    names = ["voice-004", "voice-005", "voice-006"]
    assert [row["held-out voice"] for row in figures["nearest_of_speech"]] == names
    for what in ("recordings", "speech"):
        assert sum(row[name] for row in figures[f"nearest_of_{what}"] for name in names) == 3 * 2
        assert all(0 <= figures[f"{what},_{kind}"] <= 1 for kind in ("held_out", "held_out,_of_all", "trained"))
    assert figures["steps"] >= 6
    assert figures["training_minutes"] > 0
    assert "| held-out voice | voice-004 | voice-005 | voice-006 |" in capfd.readouterr().out
    cached = json.loads((tmp_path / "corpus-6-3-36-cache/cache.json").read_text())["speakers"]
    assert set(cached) == {"voice-001", "voice-002", "voice-003"}, (
        "no held-out voice reaches training or its validation"
    )
