"""A third kind of model is a file like the first part of this one, and a line in `KINDS`: a mel auto-encoder."""

import keras
import pytest
import tensorflow as tf

from xtts.trainer import synth_cli
from xtts.trainer.loop.metrics import Metrics
from xtts.trainer.loop.objective import Objective
from xtts.trainer.models.kind import KINDS, Kind
from xtts.trainer.stored.checkpoint import read_meta


class MelObjective(Objective):
    """The squared error of the mel, per frame."""

    metrics = Metrics(weights={"error": 2.0}, held_out=("error",), compared=("error",))

    def loss_sums(self, batch, random):
        mel = tf.cast(batch.mel, tf.float32)
        error = tf.reduce_mean(tf.square(self.model(mel) - mel), axis=2)
        return {"error": tf.reduce_sum(error * tf.sequence_mask(batch.mel_length, mel.shape[1], tf.float32), axis=1)}

    def counts_of(self, frames, tokens):
        return [frames]


def objective(config, spec, cache):
    initial = keras.initializers.GlorotUniform(config.training.seed)
    layers = [keras.layers.Dense(8, name="encoder", kernel_initializer=initial),
              keras.layers.Dense(spec.mel_channels, name="decoder", kernel_initializer=initial)]
    model = keras.Sequential(layers, name="auto_encoder")
    model.build([None, None, spec.mel_channels])
    return MelObjective(model)


KIND = Kind(name="auto-encoder", objective=objective)


@pytest.mark.long
def test_it_trains_validates_resumes_exports_and_starts_another_run(monkeypatch, run_train, call, tmp_path, read_steps):
    monkeypatch.setitem(KINDS, "auto-encoder", __name__)
    every = (f"training.{name}_every=2" for name in ("validate", "checkpoint", "samples"))
    settings = ["training.kind=auto-encoder", "training.optimizer=muon", *every]
    assert "model auto-encoder" in run_train(tmp_path / "run", *settings, "training.steps=4").succeeded()
    (step, *_), (validation, _) = read_steps(tmp_path / "run"), read_steps(tmp_path / "run", "validation")
    for row in (step, validation):
        assert row["loss"] == pytest.approx(2 * row["error"], rel=1e-5)
    assert {name for name in step if "norm" in name} == {"gradient_norm"}
    checkpoint = tmp_path / "run" / "checkpoints" / "step-2"
    assert read_meta(checkpoint)["kind"] == "auto-encoder"
    run_train(tmp_path / "part", *settings, "training.steps=4", more=["--resume", checkpoint]).succeeded()
    assert read_steps(tmp_path / "part") == read_steps(tmp_path / "run")[2:]
    said = call(synth_cli.main, "export", "--ckpt", tmp_path / "run", tmp_path / "out").succeeded()
    assert f"safetensors: xtts-train --init-from {tmp_path / 'out'}" in said
    more = ["--init-from", tmp_path / "out"]
    run_train(tmp_path / "next", *settings, "training.steps=2", more=more).succeeded()
    error = run_train(tmp_path / "voice", "training.steps=2", more=more).refused()
    assert "a model of the kind auto-encoder, expected acoustic" in error
