"""Speakers are equally loud: one gain each, in every text, and no peak is clipped."""

from pathlib import Path

import numpy as np
import pytest
import soxr

from xtts.shared.audio.trim_and_loudness import integrated_loudness
from xtts.trainer import load_voice
from xtts.trainer.speech.synthesis_options import SynthesisOptions

BASE, RATE = Path(__file__).parents[3] / "voices" / "base", 22_050
TEXTS = {
    "kathleen": "The wind had turned during the night, and the boats lay still in the harbour. Nobody was awake.",
    "kerstin": "Der Wind hatte in der Nacht gedreht, und die Boote lagen still im Hafen. Niemand war wach.",
}


@pytest.mark.parametrize(("speaker", "text"), TEXTS.items())
def test_voices_of_other_recordings_are_equally_loud(speaker, text):
    recorded, spoken = (load_voice(BASE, speaker=speaker, loudness=loudness) for loudness in ("recorded", -20))
    samples = spoken.speak(text).samples
    assert integrated_loudness(samples, RATE) == pytest.approx(-20, abs=2)
    assert np.abs(soxr.resample(samples, RATE, 8 * RATE)).max() < 0.93
    gains = []
    for short in ("Oh!", "Ja.", "a"):
        before, after = (voice.speak(short).samples for voice in (recorded, spoken))
        kept = np.abs(before) > 0.3 * np.abs(before).max()
        gains.append(np.median(after[kept] / before[kept]))
    np.testing.assert_allclose(gains, gains[0], rtol=1e-3)  # a whisper stays one, and half a second does not pump
    quiet = load_voice(BASE, speaker=speaker, loudness=-30).speak(text).samples
    assert integrated_loudness(quiet, RATE) == pytest.approx(-30, abs=2)


@pytest.mark.parametrize("expand_numbers", [True, False])
def test_a_voice_that_reads_no_numbers_is_measured_by_its_letters(onnx_folder, expand_numbers):
    voice = load_voice(onnx_folder, nfe=2, loudness="recorded")
    voice.voice = voice.voice.model_copy(update={"expand_numbers": expand_numbers})
    heard = []
    voice.synthesizer.speak = lambda ids, **_: heard.append("".join(voice._symbols(ids))) or (np.zeros((9, 80)), None)
    voice.vocoder = lambda mel: np.zeros(9 * 256, np.float32)
    voice.synthesizer.options = SynthesisOptions(nfe=2)
    voice.measure()
    assert [text[:11] for text in heard] == (["one, two, t", "one million"] if expand_numbers else [heard[0][:11]])
    assert len(heard[0]) > 10
    assert voice.gain == pytest.approx(10**1.5), "of what is silent, the noise is not raised without end"


def test_the_mean_of_both_trials_sets_the_gain_however_she_is_asked_to_speak():
    asked = ({}, {"seed": 3}, {"speed": 2}, {"temperature": 0})
    voice, *others = (load_voice(BASE, loudness=-20.0, **given) for given in asked)
    counting, number = map(voice._loudness, voice._trials())
    assert abs(counting - number) > 0.5
    assert (counting + number) / 2 == pytest.approx(-20 - 20 * np.log10(voice.gain))
    assert {other.gain for other in others} == {voice.gain}
