"""The speaker encoder: the embeddings of the package that its weights come from, and voices told apart."""

from pathlib import Path

import numpy as np
import pytest
import soundfile
import soxr

from xtts.shared.audio import speaker_encoder
from xtts.shared.audio.speaker_encoder import (
    EMBEDDING,
    FACTORS,
    RATE,
    TIMBRE_HERTZ,
    VOICE_SHAPE,
    embed_speaker,
    embed_voices,
    recorded_voice,
)

SOUNDS = Path(__file__).parents[3] / "docs" / "demo"


def recording(name):
    samples, rate = soundfile.read(SOUNDS / f"{name}.mp3", dtype="float32")
    return soxr.resample(samples, rate, RATE)


@pytest.mark.parametrize(("samples", "largest"), [
    (61_920, {193: 0.2778, 246: 0.2354, 237: 0.2122}),
    (38_000, {193: 0.2844, 111: 0.2240, 251: 0.2097}),  # the last window is covered enough
    (31_000, {251: 0.2997, 193: 0.2903, 2: 0.2087}),  # and not enough
    (9_000, {251: 0.2712, 160: 0.2638, 193: 0.2361}),  # less than a window
])
def test_embeddings_are_those_of_resemblyzer(samples, largest):
    embedding = embed_speaker(recording("kerstin-recorded")[:samples])
    assert embedding.shape == (256,)
    assert np.linalg.norm(embedding) == pytest.approx(1.0, abs=1e-5)
    found = {int(i): float(embedding[i]) for i in np.argsort(-embedding)[:3]}
    assert found == pytest.approx(largest, abs=1e-3)


def alike(one, other):
    one, other = one[:EMBEDDING], other[:EMBEDDING]
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))


@pytest.fixture(scope="module")
def people():
    return {name: recording(f"{name}-recorded") for name in ("kerstin", "kathleen", "dutch")}


def chord(seconds):
    time = np.arange(int(seconds * RATE)) / RATE
    return sum(np.sin(2 * np.pi * hertz * k * time) / k for hertz in (220, 277, 330) for k in range(1, 8)) * 0.1


def after_a_pause(own, other):
    return [np.concatenate([1e-4 * np.random.default_rng(0).normal(size=2 * len(own)), own])]


@pytest.mark.parametrize(("disturb", "doubts"), [
    (lambda own, other: [np.concatenate([chord(len(own) / RATE / 2), own])], True),
    (lambda own, other: [np.concatenate([other[: len(own) // 3], own])], True), (after_a_pause, False),
    (lambda own, other: [own, other[: len(own) // 2]], True), (lambda own, other: [0.05 * own], False),
])
def test_a_recorded_voice_is_that_of_most_of_the_sound(people, disturb, doubts):
    own, other, told = np.concatenate([people["kerstin"]] * 2), np.concatenate([people["kathleen"]] * 2), []
    plain, found = recorded_voice([own]), recorded_voice(disturb(own, other), told.append)
    assert bool(told) == doubts, told
    assert all("% of the recording is unlike the voice taken from it" in line for line in told)
    assert alike(found, plain) > (0.9 if disturb is after_a_pause else 0.94), "the mean over all windows: at most 0.93"
    assert alike(found, plain) > alike(found, recorded_voice([other])) + 0.5


def test_a_recording_of_one_window_has_a_voice(people):
    assert alike(recorded_voice([people["kerstin"][:RATE]]), recorded_voice([people["kerstin"]])) > 0.5


def test_perturbed_voices_have_the_embeddings_of_perturbed_sounds(people):
    own = people["kerstin"]
    voices = embed_voices([own, own])
    assert (voices.shape, voices.dtype) == (VOICE_SHAPE, np.float16)
    assert FACTORS[0] == 1.0
    plain = voices[0].mean(axis=0, dtype=np.float32)
    assert alike(plain, recorded_voice([own])) > 0.8
    higher = recorded_voice([soxr.resample(own, RATE * FACTORS[-1], RATE)])
    assert alike(voices[-1].mean(axis=0, dtype=np.float32), higher) > alike(plain, higher) + 0.3


def test_a_long_recording_is_embedded_a_few_windows_at_a_time(people, monkeypatch):
    whole = recorded_voice([people["dutch"]])
    monkeypatch.setattr(speaker_encoder, "_WINDOWS_AT_ONCE", 2)
    np.testing.assert_allclose(recorded_voice([people["dutch"]]), whole, atol=1e-3)


def test_a_timbre_tells_what_a_microphone_does(people):
    own, taps = np.concatenate([people["kerstin"]] * 2), np.array([1.0, -0.4])
    change = recorded_voice([np.convolve(own, taps)])[EMBEDDING:] - recorded_voice([own])[EMBEDDING:]
    filtered = np.log(np.abs(np.exp(-2j * np.pi * np.outer(TIMBRE_HERTZ, range(2)) / RATE) @ taps))
    recorded = np.array(TIMBRE_HERTZ) < 7_000.0
    change, filtered = change[recorded], filtered[recorded]
    np.testing.assert_allclose(change - change.mean(), filtered - filtered.mean(), atol=0.25)
    stored = embed_voices([own])[0].mean(axis=0)[EMBEDDING:]
    np.testing.assert_allclose(stored, recorded_voice([own])[EMBEDDING:], atol=0.25)


def test_digital_silence_is_no_voice(people):
    """A clip of Common Voice whose pauses are zeros had embeddings of nothing, and no timbre at all."""
    own = people["kerstin"]
    plain, gated = embed_voices([own])[0], embed_voices([own, np.zeros(9 * RATE)])[0]
    assert np.isfinite(gated).all()
    assert min(alike(plain[i].astype(np.float32), gated[i].astype(np.float32)) for i in range(len(gated))) > 0.25
    np.testing.assert_allclose(gated[:, EMBEDDING:], plain[:, EMBEDDING:], atol=0.25)
