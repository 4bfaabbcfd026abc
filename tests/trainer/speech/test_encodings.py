"""The bytes of a sound, whole and piece by piece."""

import io

import numpy as np
import pytest
import soundfile

from xtts.trainer.speech.encodings import MEDIA_TYPES, Encoder

RATE, RATES = 22_050, {"opus": 48_000, "pcm": 24_000}


@pytest.fixture(scope="module")
def sound():
    random = np.random.default_rng(1)
    time = np.arange(5 * RATE) / RATE
    return (np.sin(2 * np.pi * 220 * time) * 0.5 + random.normal(0, 0.01, len(time))).astype(np.float32)


def decoded(name, data, frames):
    if name in ("pcm", "raw"):
        return np.frombuffer(data, "<i2")
    if name == "flac" and data[22:26] == bytes(4):  # a streamed flac does not tell its length; libsndfile needs it
        data = data[:22] + frames.to_bytes(4, "big") + data[26:]
    return soundfile.read(io.BytesIO(data), dtype="int16")[0]


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("name", [*MEDIA_TYPES, "raw"])
def test_a_sound_in_pieces_decodes_to_itself(sound, name, streams):
    encoder = Encoder(name, RATE, streams=streams)
    parts = [encoder.add(piece, last=i == 3) for i, piece in enumerate(np.array_split(sound, 4))]
    data = b"".join(parts)
    assert all(parts[1:]) == streams
    file = io.BytesIO()
    soundfile.write(file, sound, RATE, subtype="PCM_16", format="WAV")
    wanted = soundfile.read(io.BytesIO(file.getvalue()), dtype="int16")[0]
    found = decoded(name, data, len(wanted))
    rate = RATES.get(name, RATE)
    assert encoder.sample_rate == rate
    if name in ("mp3", *RATES):
        assert abs(len(found) / rate - len(wanted) / RATE) < 0.2
        loud = np.abs(found[rate : 2 * rate].astype(float)).mean()
        assert loud == pytest.approx(np.abs(wanted[RATE : 2 * RATE].astype(float)).mean(), rel=0.1)
    else:
        assert np.array_equal(found, wanted)
        if name == "wav" and not streams:
            assert data == file.getvalue()


@pytest.mark.parametrize("rate", [16_000, 22_050, 24_000, 44_100])
def test_pcm_has_the_rate_that_clients_of_openai_play_it_at(rate):
    """The rate is written in the player of OpenAI's own package, and in pipecat and livekit."""
    tone = np.sin(2 * np.pi * 500 * np.arange(rate) / rate).astype(np.float32)
    encoder = Encoder("pcm", rate, streams=True)
    data = b"".join(encoder.add(piece, last=i == 2) for i, piece in enumerate((tone[:7], tone[7:], tone[:0])))
    heard = np.frombuffer(data, "<i2")
    assert len(heard) == 24_000
    assert np.argmax(np.abs(np.fft.rfft(heard))) == 500
    assert np.abs(heard[100:-100].astype(int)).max() == pytest.approx(2**15, rel=0.01)
