"""`from xtts.trainer import load_voice, evaluate_checkpoint`."""

import numpy as np
import pytest

from xtts.shared.errors import LockstepError
from xtts.trainer import evaluate_checkpoint, load_voice


def test_a_text_sounds_the_same_without_its_unknown_letters(onnx_folder):
    voice = load_voice(onnx_folder, nfe=2, speed=4.0)
    speech = voice.speak("ab")
    assert speech.samples.dtype == np.float32
    assert speech.mel.shape[1] == 80
    assert np.abs(speech.samples).max() <= 1
    with pytest.warns(UserWarning, match="left out what the voice does not know: \u2665"):
        again = voice.speak("ab\u2665")
    assert np.array_equal(again.mel, speech.mel)
    with pytest.raises(LockstepError, match="nothing to speak"):
        voice.speak(" ")


@pytest.mark.long
def test_the_figures_are_the_means_of_every_system(finished_run, capsys):
    figures = evaluate_checkpoint(finished_run[0], limit=1, nfe=2)
    assert set(figures) == {"synthesised", "vocoded recording"}
    assert figures["vocoded recording"].mcd_db < figures["synthesised"].mcd_db
    assert capsys.readouterr().out == ""
