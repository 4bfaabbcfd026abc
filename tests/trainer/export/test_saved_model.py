"""The exported model speaks in a process that knows nothing of this package."""

import subprocess
import sys

import numpy as np
import pytest

from xtts.shared.errors import LockstepError
from xtts.trainer.export.export_formats import SAVED_MODEL, ExportRequest
from xtts.trainer.run.finish import export
from xtts.trainer.speech.synthesis_options import SynthesisOptions

PROGRAM = """
import json, sys
import numpy as np
import tensorflow as tf

folder = sys.argv[1]
tokenizer = json.load(open(f"{folder}/tokenizer.json"))
ids = [tokenizer["symbols"].index(symbol) for symbol in ("<start>", *"hello there", "<end>")]
loaded = tf.saved_model.load(f"{folder}/model")
speak = loaded.signatures["serving_default"]
tokens = np.zeros(speak.structured_input_signature[1]["tokens"].shape, np.int32)
tokens[0, : len(ids)] = ids
spoken = speak(tokens=tf.constant(tokens), token_length=tf.constant([len(ids)]), temperature=tf.constant(0.0),
               speed=tf.constant(1.0), seed=tf.constant([0, 0]), wanted_frames=tf.constant([0]))
np.savez("spoken.npz", ids=ids, signatures=sorted(loaded.signatures), **{k: v.numpy() for k, v in spoken.items()})
"""
STRANGER = f"""
import sys
sys.modules["xtts"] = None  # as where it is not installed
{PROGRAM}
assert not any(name.startswith("xtts.") for name in sys.modules)
"""


@pytest.mark.parametrize("stranger", [False, pytest.param(True, marks=pytest.mark.long)])
def test_stock_tensorflow_speaks_as_the_command_does(
    saved_model_folder, tensorflow_synthesizer, tmp_path, monkeypatch, stranger
):
    monkeypatch.chdir(tmp_path)
    if stranger:
        subprocess.run([sys.executable, "-P", "-c", STRANGER, saved_model_folder], check=True)
    else:
        monkeypatch.setattr(sys, "argv", ["-c", str(saved_model_folder)])
        exec(PROGRAM, {})
    with np.load("spoken.npz") as spoken:
        ids, mel, mel_length, durations, signatures = (
            spoken[key] for key in ("ids", "mel", "mel_length", "durations", "signatures")
        )
    (shape,) = tensorflow_synthesizer.voice.shapes
    assert len(signatures) == 2
    assert mel.shape == (1, shape.frames, 80)
    # Without noise, since XLA draws other numbers from a seed than plain TensorFlow.
    monkeypatch.setattr(tensorflow_synthesizer, "options", SynthesisOptions(nfe=2, temperature=0.0))
    expected, frames_of_tokens = tensorflow_synthesizer.speak(ids.tolist(), speaker=0, noise_key=0)
    assert mel_length[0] == durations.sum()
    np.testing.assert_array_equal(durations[0, : len(ids)], frames_of_tokens)
    np.testing.assert_allclose(mel[0, : mel_length[0]], expected, atol=1e-3)


def test_nothing_is_overwritten(saved_model_folder, finished_run):
    with pytest.raises(LockstepError, match="already exists, expected a new folder"):
        export(finished_run[0], ExportRequest(out=saved_model_folder, formats=[SAVED_MODEL]))
