import numpy as np

from xtts.shared.audio.mel_profiles import MEL_PROFILES
from xtts.trainer.evaluation.pictures import draw_alignment


def test_letters_that_the_font_lacks_are_code_points():
    figure = draw_alignment(np.array([3, 3, 4]), np.zeros([10, 80]), MEL_PROFILES["hifigan"], ["क", " ", "ب"])
    assert [label.get_text() for label in figure.axes[1].get_yticklabels()] == ["U+0915", "\N{OPEN BOX}", "ب"]
