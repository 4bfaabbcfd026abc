"""The bytes of a sound, whole and piece by piece."""

import io

import numpy as np
import pytest
import soundfile

from xtts.trainer.speech.encodings import MEDIA_TYPES, Encoder

RATE = 22_050


@pytest.fixture(scope="module")
def sound():
    random = np.random.default_rng(1)
    time = np.arange(5 * RATE) / RATE
    return (np.sin(2 * np.pi * 220 * time) * 0.5 + random.normal(0, 0.01, len(time))).astype(np.float32)


def decoded(name, data, frames):
    if name == "pcm":
        return np.frombuffer(data, "<i2")
    if name == "flac" and data[22:26] == bytes(4):  # a streamed flac does not tell its length; libsndfile needs it
        data = data[:22] + frames.to_bytes(4, "big") + data[26:]
    return soundfile.read(io.BytesIO(data), dtype="int16")[0]


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("name", MEDIA_TYPES)
def test_a_sound_in_pieces_decodes_to_itself(sound, name, streams):
    encoder = Encoder(name, RATE, streams=streams)
    parts = [encoder.add(piece, last=i == 3) for i, piece in enumerate(np.array_split(sound, 4))]
    data = b"".join(parts)
    assert all(parts[1:]) == streams
    file = io.BytesIO()
    soundfile.write(file, sound, RATE, subtype="PCM_16", format="WAV")
    wanted = soundfile.read(io.BytesIO(file.getvalue()), dtype="int16")[0]
    found = decoded(name, data, len(wanted))
    if name in ("mp3", "opus"):
        rate = 48_000 if name == "opus" else RATE
        assert abs(len(found) / rate - len(wanted) / RATE) < 0.2
        loud = np.abs(found[rate : 2 * rate].astype(float)).mean()
        assert loud == pytest.approx(np.abs(wanted[RATE : 2 * RATE].astype(float)).mean(), rel=0.1)
    else:
        assert np.array_equal(found, wanted)
        if name == "wav" and not streams:
            assert data == file.getvalue()
