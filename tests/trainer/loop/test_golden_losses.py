"""Golden losses: twenty locked steps from a fixed seed give the numbers of `golden_losses.json`.

A refactoring does not change them; a change of the mathematics (initial values, model, losses, random numbers,
clipping, optimizer, schedule, averages) changes them. If that is intended, write the file again and say so in the
commit:

    python tests/trainer/loop/test_golden_losses.py
"""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from xtts.shared.audio.mel_profiles import mel_profile
from xtts.shared.config_files import load_config
from xtts.trainer.data.batch import Batch
from xtts.trainer.loop.metrics import ACOUSTIC
from xtts.trainer.loop.objectives import AcousticObjective
from xtts.trainer.loop.optimizer import learning_rate
from xtts.trainer.loop.train_state import make_optimizer
from xtts.trainer.loop.train_step import StepFunctions
from xtts.trainer.model import reference_encoder
from xtts.trainer.model.acoustic_model import AcousticModel
from xtts.trainer.model.conditioning import Vocabularies

GOLDEN = Path(__file__).with_name("golden_losses.json")
STEPS, CLIPS, TOKENS, FRAMES, CHANNELS, VOCABULARY = 20, 4, 24, 72, 80, 30
COLUMNS = ("loss", "prior", "flow", "duration", "gradient_norm", "duration_gradient_norm")
SETTINGS = [
    "model.text_width=16", "model.text_blocks=1", "model.text_heads=2", "model.prenet_layers=1",
    "model.duration_width=16", "model.decoder_width=16", "model.decoder_blocks=1", "model.decoder_levels=[]",
    f"training.steps={STEPS}", "training.warmup_fraction=0.25", "training.learning_rate=5.0e-3", "training.seed=3",
    "training.optimizer=adamw", "model.duration_dropout=0.05",
]  # fmt: skip
RUNS: dict[str, list[str]] = {
    "plain": [],
    "voice": [
        "model.voice_latents=4", "model.voice_frames=24", "model.voice_width=16", "model.voice_layers=1",
        "model.voice_blocks=1", "model.voice_vtlp=0",
    ],
    "levels": [
        "model.decoder_levels=[{rate: 4, width: 24, blocks: 1, heads: 2, expansion: 2}]",
    ],
    "muon": ["training.optimizer=muon"],
}  # fmt: skip
"""Further settings by name."""
TOLERANCE = 3e-5
"""Relative. Code for AVX-512, AVX2 and SSE 4.2 differs by 1e-6 at most. A weight of the duration loss greater by
1% moves the losses by 9e-3, a dropout greater by 1% by 8e-3, an adam_beta2 of 0.9895 for 0.99 by 2e-4; 1% of the
clipping norm or of the weight decay (3e-6) stays hidden."""


def batch():
    """Four clips in which every token has a sound of its own, plus noise: tokens, mel and both lengths."""
    random = np.random.default_rng(17)
    token_length = np.array([24, 17, 9, 20], np.int32)
    mel_length = np.array([72, 50, 31, 66], np.int32)
    tokens = np.zeros([CLIPS, TOKENS], np.int32)
    mel = np.full([CLIPS, FRAMES, CHANNELS], np.log(1e-5), np.float32)
    sounds = random.normal(-5.0, 2.0, [VOCABULARY, CHANNELS])
    for row, (n, m) in enumerate(zip(token_length, mel_length, strict=True)):
        tokens[row, :n] = random.integers(1, VOCABULARY, n)
        starts = np.sort(random.choice(np.arange(1, m), n - 1, replace=False))
        durations = np.diff([0, *starts, m])
        mel[row, :m] = np.repeat(sounds[tokens[row, :n]], durations, axis=0) + random.normal(0, 0.3, [m, CHANNELS])
    return [tokens, mel, token_length, mel_length, *np.zeros([2, CLIPS], np.int32)]


def golden_steps(*assignments, count=STEPS, compiled=True):
    """float[count, len(COLUMNS)], and the summed norms of all weights and of all averages afterwards: float[2]."""
    config = load_config("tiny", assignments=[*SETTINGS, *assignments])
    model = AcousticModel(
        config.model, Vocabularies(VOCABULARY), replace(mel_profile("hifigan"), mel_channels=CHANNELS), mean=-5.0,
        deviation=2.0, seed=config.training.seed,
    )  # fmt: skip
    optimizer = make_optimizer(model.trainable_variables, config.training)
    step = tf.Variable(0, dtype=tf.int64, trainable=False)
    clips = Batch(*map(tf.constant, batch()))
    typical = int(tf.reduce_sum(clips.mel_length)), int(tf.reduce_sum(clips.token_length))
    step_functions = StepFunctions(AcousticObjective(model), optimizer, config.training, step, typical=typical)
    if compiled:
        step_functions.trace({0: Batch(*(tf.TensorSpec(part.shape, part.dtype) for part in clips))})
    rows = []
    for _ in range(count):
        rate = learning_rate(config.training, step)
        if compiled:
            values = step_functions.train(0, clips, rate)
        else:  # the same bodies, op by op: a twentieth of the time to compile them
            losses, gradient = step_functions.accumulate(clips)
            values = step_functions.update.python_function(losses, tf.reduce_sum(clips.mel_length), rate, gradient)
        metrics = dict(zip(ACOUSTIC.step, values.numpy().tolist(), strict=True))
        rows.append([metrics[name] for name in COLUMNS])
    averages = optimizer.flat.split(optimizer.averages.read_value())
    norms = [sum(float(tf.norm(value)) for value in group) for group in (optimizer.weights, averages)]
    return np.array(rows), np.array(norms)


@pytest.mark.parametrize("run", RUNS)
def test_the_first_steps_give_the_stored_losses(run, monkeypatch):
    """Op by op, but for the numbers that XLA draws otherwise: whose voice a clip gets, and where it is cropped."""
    in_xla = tf.function(reference_encoder.choose_references, jit_compile=True)
    monkeypatch.setattr(reference_encoder, "choose_references", in_xla)
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))[run]
    assert np.mean(golden["steps"][-3:], axis=0)[0] < 0.8 * golden["steps"][0][0], "it learns"
    found, _ = golden_steps(*RUNS[run], count=3, compiled=False)
    np.testing.assert_allclose(found, golden["steps"][:3], rtol=TOLERANCE, err_msg=f"{', '.join(COLUMNS)} by step")


@pytest.mark.long
@pytest.mark.parametrize("run", RUNS)
def test_twenty_steps_give_the_stored_losses(run):
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))[run]
    found, norms = golden_steps(*RUNS[run])
    np.testing.assert_allclose(found, golden["steps"], rtol=TOLERANCE, err_msg=f"{', '.join(COLUMNS)} by step")
    np.testing.assert_allclose(norms, golden["norms"], rtol=TOLERANCE, err_msg="norms of weights and averages")


def write():
    parts = []
    for run, assignments in RUNS.items():
        rows, norms = golden_steps(*assignments)
        lines = ",\n".join(f"   {json.dumps([float(f'{value:.8g}') for value in row])}" for row in rows)
        parts.append(f' "{run}": {{"norms": {json.dumps(norms.round(5).tolist())}, "steps": [\n{lines}\n ]}}')
    GOLDEN.write_text(f'{{"columns": {json.dumps(COLUMNS)},\n' + ",\n".join(parts) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    write()
