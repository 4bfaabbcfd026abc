"""A third kind of model needs one file like the first lines of this one, and its place in `KINDS`: durations alone."""

from dataclasses import replace

import pytest

from xtts.trainer import synth_cli
from xtts.trainer.export.export_formats import SAFETENSORS
from xtts.trainer.export.exported_files import write_description
from xtts.trainer.export.model_card import save_weights
from xtts.trainer.kinds import acoustic
from xtts.trainer.kinds.all_kinds import KINDS
from xtts.trainer.loop.metrics import Metrics
from xtts.trainer.loop.objectives import AcousticObjective
from xtts.trainer.model.random_numbers import RandomInputs
from xtts.trainer.stored.checkpoint import read_meta


class DurationObjective(AcousticObjective):
    """An acoustic model without its flow."""

    metrics = Metrics(
        weights={"prior": 1.0, "duration": 2.0}, held_out=("prior", "duration"), compared=("duration",),
        second_norm="duration_gradient_norm",
    )  # fmt: skip

    def loss_sums(self, batch, random):
        aligned = self.model.align_clips(batch, RandomInputs(*random).dropout)
        return {"prior": aligned.prior, "duration": aligned.duration}

    def counts_of(self, frames, tokens):
        return [frames * self.model.mel_channels, tokens]

    def held_out_sums(self, batch, clips, seed, bucket):
        aligned = self.model.align_clips(batch, None)
        return {"prior": aligned.prior, "duration": aligned.duration}


def export(stored, folder, request):
    save_weights(stored, folder, options=request.options)
    write_description(stored, folder)
    return ["safetensors"]


DURATIONS = replace(
    acoustic.KIND, name="durations", product="predictor of durations", model_name=lambda _: "durations",
    objective=DurationObjective, final_formats=[SAFETENSORS], export=export, measure=lambda *_: None,
)  # fmt: skip


def test_it_trains_validates_resumes_exports_and_starts_another_run(monkeypatch, run_train, call, tmp_path, read_steps):
    monkeypatch.setitem(KINDS, "durations", DURATIONS)
    settings = ["training.kind=durations", "training.validate_every=2", "training.checkpoint_every=2"]
    screen = run_train(tmp_path / "run", *settings, "training.steps=4").succeeded()
    assert "model durations" in screen
    (step, *_), (validation, _) = read_steps(tmp_path / "run"), read_steps(tmp_path / "run", "validation")
    for row in (step, validation):
        assert row["loss"] == pytest.approx(row["prior"] + 2 * row["duration"], rel=1e-5)
        assert "flow" not in row
    checkpoint = tmp_path / "run" / "checkpoints" / "step-2"
    assert read_meta(checkpoint)["kind"] == "durations"
    code, _, error = run_train(tmp_path / "part", *settings, "training.steps=4", more=["--resume", checkpoint])
    assert (code, read_steps(tmp_path / "part")) == (0, read_steps(tmp_path / "run")[2:]), error
    call(synth_cli.main, "export", "--ckpt", tmp_path / "run", tmp_path / "out").succeeded()
    more = ["--init-from", tmp_path / "out"]
    assert run_train(tmp_path / "next", *settings, "training.steps=2", more=more)[0] == 0
    error = run_train(tmp_path / "voice", "training.steps=2", more=more).refused()
    assert "a model of the kind durations, expected acoustic" in error
    error = call(synth_cli.main, "--ckpt", tmp_path / "run", "Hello.").refused()
    assert "a model of the kind durations, expected acoustic" in error
