"""The speaker encoder: the embeddings of the package that its weights come from, and voices told apart."""

from pathlib import Path

import numpy as np
import pytest
import soundfile
import soxr

from xtts.shared.audio.speaker_encoder import RATE, embed_speaker

DOCS = Path(__file__).parents[3] / "docs"


def recording(name):
    samples, rate = soundfile.read(DOCS / f"{name}.mp3", dtype="float32")
    return soxr.resample(samples, rate, RATE)


@pytest.mark.parametrize(("samples", "largest"), [
    (61_920, {193: 0.2778, 246: 0.2354, 237: 0.2122}),
    (38_000, {193: 0.2844, 111: 0.2240, 251: 0.2097}),  # the last window is covered enough
    (31_000, {251: 0.2997, 193: 0.2903, 2: 0.2087}),  # and not enough
    (9_000, {251: 0.2712, 160: 0.2638, 193: 0.2361}),  # less than a window
])  # fmt: skip
def test_embeddings_are_those_of_resemblyzer(samples, largest):
    embedding = embed_speaker(recording("kerstin-recorded")[:samples])
    assert embedding.shape == (256,)
    assert np.linalg.norm(embedding) == pytest.approx(1.0, abs=1e-5)
    found = {int(i): float(embedding[i]) for i in np.argsort(-embedding)[:3]}
    assert found == pytest.approx(largest, abs=1e-3)


def test_two_recordings_of_a_person_are_more_alike_than_those_of_two():
    kerstin, kathleen = recording("kerstin-recorded"), recording("kathleen-recorded")
    half = len(kerstin) // 2
    one, two, other = (embed_speaker(part) for part in (kerstin[:half], kerstin[half:], kathleen))
    assert one @ two > max(one @ other, two @ other) + 0.1
