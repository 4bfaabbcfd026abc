"""`from xtts.trainer import load_voice`; `evaluate_checkpoint` is in test_examples."""

import numpy as np
import pytest

from xtts.shared.errors import LockstepError
from xtts.trainer import load_voice


def test_a_text_sounds_the_same_without_its_unknown_letters(onnx_folder):
    voice = load_voice(onnx_folder, nfe=2, speed=4.0)
    speech = voice.speak("ab")
    assert speech.samples.dtype == np.float32
    assert speech.mel.shape[1] == 80
    assert np.abs(speech.samples).max() <= 1
    with pytest.warns(UserWarning, match="skipped what the voice does not know: \u2665"):
        again = voice.speak("ab\u2665")
    assert np.array_equal(again.mel, speech.mel)
    for half in ("\ud83d", "\ude00"):
        with pytest.warns(UserWarning, match=f"does not know: U\\+{ord(half):04X}"):
            assert np.array_equal(voice.speak(f"a{half}b").mel, speech.mel)
    with pytest.raises(LockstepError, match="nothing to speak"):
        voice.speak(" ")
