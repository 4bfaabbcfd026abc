"""The exported model speaks in a process that knows nothing of this package."""

import json
import subprocess
import sys

import numpy as np
import pytest
from cache_files import tokenizer_path

from xtts.shared.errors import LockstepError
from xtts.trainer.evaluation.synthesis_options import SynthesisOptions
from xtts.trainer.synth.cli import main
from xtts.trainer.synth.export.export_command import ExportRequest, export
from xtts.trainer.synth.voice_source import open_source

STRANGER = """
import json, sys
sys.modules["xtts"] = None  # as where it is not installed
import numpy as np
import tensorflow as tf

tokenizer = json.load(open("exported/tokenizer.json"))
profile = json.load(open("exported/profile.json"))
assert profile["sample_rate"] == 22050
ids = [tokenizer["symbols"].index(letter) for letter in "hello there"]
loaded = tf.saved_model.load("exported/model")
speak = loaded.signatures["serving_default"]
inputs = speak.structured_input_signature[1]
tokens = np.zeros(inputs["tokens"].shape, np.int32)
tokens[0, : len(ids)] = ids
spoken = speak(tokens=tf.constant(tokens), token_length=tf.constant([len(ids)]), temperature=tf.constant(0.0),
               speed=tf.constant(1.0), seed=tf.constant([0, 0]), wanted_frames=tf.constant([0]))
np.savez("spoken.npz", ids=ids, signatures=sorted(loaded.signatures), **{k: v.numpy() for k, v in spoken.items()})
assert not any(name.startswith("xtts.") for name in sys.modules)
"""


@pytest.fixture(scope="module")
def exported(finished_run, call, tmp_path_factory):
    folder = tmp_path_factory.mktemp("export")
    code, _, err = call(main, "export", "--ckpt", finished_run[0], folder / "exported", "--steps", 2)
    assert code == 0, err
    return folder


def test_stock_tensorflow_speaks_as_the_command_does(exported, finished_run):
    from xtts.trainer.synth.tensorflow_speaker import TensorFlowSpeaker

    (exported / "stranger.py").write_text(STRANGER)
    result = subprocess.run(
        [sys.executable, "-P", "stranger.py"], capture_output=True, text=True, check=False, cwd=exported
    )
    assert result.returncode == 0, result.stderr
    with np.load(exported / "spoken.npz") as spoken:
        ids, mel, mel_length, signatures = (spoken[key] for key in ("ids", "mel", "mel_length", "signatures"))
    source = open_source(finished_run[0])
    largest = source.voice.ladder[-1]
    assert len(signatures) == len(source.voice.ladder) + 1
    assert mel.shape == (1, largest.frames, 80)
    # Without noise, since XLA draws other numbers from a seed than plain TensorFlow.
    speaker = TensorFlowSpeaker(source, SynthesisOptions(steps=2, temperature=0.0))
    expected, frames = speaker._run(largest, speaker._arguments(largest, ids.tolist(), 0, 0, 0))
    assert mel_length[0] == frames
    np.testing.assert_allclose(mel[0], expected, atol=1e-3)


def test_tokenizer_and_profile_are_next_to_it(exported, finished_run, tiny_cache):
    assert json.loads((exported / "exported/tokenizer.json").read_text()) == json.loads(
        tokenizer_path(tiny_cache).read_text()
    )
    assert json.loads((exported / "exported/profile.json").read_text())["name"] == "hifigan"
    assert sorted(path.name for path in exported.iterdir() if path.name.startswith(".")) == []


def test_nothing_is_overwritten(exported, finished_run):
    request = ExportRequest(checkpoint=finished_run[0], out=exported / "exported", synthesis=SynthesisOptions(steps=2))
    with pytest.raises(LockstepError, match="already exists, expected a new folder"):
        export(request)
