"""The examples do what they promise, on the small corpus and its cache."""

import json
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path
from unittest.mock import MagicMock, create_autospec

import numpy as np
import pytest
import soundfile
import tensorflow  # noqa: F401 - here, so that no test is charged for it
from test_docs import LINK, anchors

from xtts.shared.cache.cache_spec import load_spec
from xtts.shared.cache.shard_reader import read_shard
from xtts.trainer.loop.chunk import CallResult, Chunk
from xtts.trainer.models.acoustic.objective import ACOUSTIC

EXAMPLES = Path(__file__).parents[1] / "examples"
NOTEBOOK = json.loads((EXAMPLES / "train_a_voice.ipynb").read_text(encoding="utf-8"))["cells"]


@pytest.mark.parametrize("split", ["train", "validation"])
def test_read_cache_gives_every_clip_as_it_is_stored(tiny_cache, split):
    example, spec, records, read = EXAMPLES / "read_cache.py", load_spec(tiny_cache), {}, []
    assert not re.search("(import|from) xtts", example.read_text())
    for number, bucket in enumerate(spec.buckets):
        for shard in bucket.shards(split):
            records |= {record.clip_id: record for record in read_shard(tiny_cache / shard.file, spec)}
        for batch in runpy.run_path(str(example))["read_bucket"](tiny_cache, number, split=split):
            read += (dict(zip(batch, values, strict=True)) for values in zip(*batch.values(), strict=True))
    assert len(read) == len(records) > 0
    for clip in read:
        record = vars(records.pop(clip.pop("id").numpy().decode()))
        assert all(np.array_equal(value, record[name]) for name, value in clip.items())


def test_own_model_learns_from_the_cache_and_is_compiled_once_per_bucket(tiny_cache, monkeypatch):
    example, counted = runpy.run_path(str(EXAMPLES / "own_model.py")), []
    used = example["train"].__globals__
    counting = lambda body: lambda *batch: counted.append(batch[1].shape[1]) or body(*batch)  # noqa: E731
    locked = used["locked"]
    monkeypatch.setitem(used, "locked", lambda body, signature: locked(counting(body), signature))
    losses = example["train"](tiny_cache, 60)
    assert np.mean(losses[-10:]) < 0.9 * losses[0]
    assert counted == [bucket.frames for bucket in load_spec(tiny_cache).buckets]


def test_train_and_speak_calls_the_four_names_as_they_are_defined(monkeypatch, tmp_path):
    train_and_speak = runpy.run_path(str(EXAMPLES / "train_and_speak.py"))["train_and_speak"]
    used = train_and_speak.__globals__
    for name in ("build_cache", "verify_cache", "train", "load_voice"):
        monkeypatch.setitem(used, name, create_autospec(used[name]))
    used["verify_cache"].return_value = []
    used["load_voice"].return_value.sample_rate = 22_050
    used["load_voice"].return_value.speak.return_value.samples = np.ones(9)
    samples, rate = soundfile.read(train_and_speak(tmp_path / "corpus", tmp_path, "ab cd", {"training.steps": 2}))
    assert (len(samples), rate) == (9, 22_050)
    assert used["train"].call_args.args == used["build_cache"].call_args.args[1:] == (tmp_path / "features",)


def test_log_to_wandb_sends_every_step_and_validation_once(monkeypatch):
    logged, wandb = {}, MagicMock()
    wandb.log = lambda values, step: logged.setdefault(step, {}).update(values)
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    monkeypatch.setattr(sys, "argv", ["log_to_wandb.py", "features", "20"])
    example = runpy.run_path(str(EXAMPLES / "log_to_wandb.py"))
    train = create_autospec(example["train"])
    monkeypatch.setitem(example["main"].__globals__, "train", train)
    example["main"]()
    assert train.call_args.kwargs["settings"] == {"training.steps": 20}
    (hook,) = train.call_args.kwargs["hooks"]
    metrics = np.arange(2 * len(ACOUSTIC.step), dtype=np.float32).reshape(2, -1)
    result = CallResult(metrics, np.ones([2, 3]), np.zeros(2, np.int32), np.zeros(2, np.int64), wall=6.0)
    about = {"metrics": ACOUSTIC, "outside_seconds": 0.0, "traces": 1, "epoch": 0, "validation": {"loss": 7.0}}
    hook(None, Chunk(first_step=3, result=result, **about))
    assert [logged[step]["train/loss"] for step in (3, 4)] == metrics[:, 0].tolist()
    assert "validation/loss" not in logged[3]
    assert logged[4]["validation/loss"] == 7.0


def test_the_notebook_shows_a_picture_and_sound_of_a_run_and_its_links_lead_somewhere():
    outputs = [output for cell in NOTEBOOK for output in cell.get("outputs", ())]
    assert not [output for output in outputs if output["output_type"] == "error"]
    shown = "".join(json.dumps(output.get("data", {})) for output in outputs)
    assert "image/png" in shown
    assert "data:audio/mpeg" in shown
    assert not re.search(r"/(home|root|tmp|Users|work)/", "".join(json.dumps(output) for output in outputs))
    for link in LINK.findall("".join(map("".join, (cell["source"] for cell in NOTEBOOK)))):
        name, _, anchor = link.partition("#")
        assert not anchor or anchor in anchors(EXAMPLES / name), link
        assert (EXAMPLES / name).exists(), link


@pytest.mark.long
def test_the_cells_of_the_notebook_train_a_voice_that_speaks(tmp_path):
    pytest.importorskip("espeakng_loader")
    folder = tmp_path / "examples"
    folder.mkdir()
    program = "\n".join("".join(cell["source"]) for cell in NOTEBOOK if cell["cell_type"] == "code")
    program = program.replace("from IPython.display import Audio", "Audio = open")  # of Jupyter, which is not installed
    line, environment = [sys.executable, "-c", program], os.environ | {"MPLBACKEND": "agg"}
    done = subprocess.run(line, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "60 clips" in done.stdout
    assert "step 20: loss" in done.stdout
    samples, rate = soundfile.read(folder / "my-voice" / "speech.mp3")
    assert (rate, len(samples) > rate, np.abs(samples).max() > 0.05) == (22_050, True, True)
    exported = {path.name for path in (folder / "my-voice" / "run" / "voice").iterdir()}
    assert {"model.onnx", "model.safetensors", "listen.html"} <= exported
