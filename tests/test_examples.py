"""The examples do what they say, on the small corpus and its cache."""

import runpy
import subprocess
import sys
from pathlib import Path
from unittest.mock import create_autospec

import numpy as np
import pytest
import soundfile

from xtts.shared.cache.cache_spec import load_spec
from xtts.shared.cache.records import parse_example, unframe

EXAMPLES = Path(__file__).parents[1] / "examples"
MICRO = {
    "model.text_width": 16, "model.text_blocks": 1, "model.text_heads": 2, "model.prenet_layers": 1,
    "model.duration_width": 16, "model.decoder_width": 16, "model.decoder_blocks": 1, "model.decoder_levels": [],
    "shapes.buckets": 1, "split.validation_fraction": 0.1, "training.batch_size": 3, "training.steps": 2,
    "training.samples_every": None,
}  # fmt: skip


@pytest.fixture
def train_and_speak():
    return runpy.run_path(str(EXAMPLES / "train_and_speak.py"))["train_and_speak"]


def stored(cache, split, number):
    """The records of one bucket by clip."""
    spec, found = load_spec(cache), {}
    for shard in spec.buckets[number].shards(split):
        for part in unframe(memoryview((cache / shard.file).read_bytes()), limit_bytes=1 << 24):
            record = parse_example(part, mel_dtype=spec.mel_dtype, mel_channels=spec.mel_channels)
            found[record.clip_id] = record
    return found


@pytest.mark.parametrize("split", ["train", "validation"])
def test_read_cache_gives_every_clip_as_it_is_stored(tiny_cache, split):
    example = EXAMPLES / "read_cache.py"
    assert "import xtts" not in example.read_text()
    assert "from xtts" not in example.read_text()
    read_bucket = runpy.run_path(str(example))["read_bucket"]
    read = 0
    for number, _ in enumerate(load_spec(tiny_cache).buckets):
        records = stored(tiny_cache, split, number)
        read += len(records)
        for batch in read_bucket(tiny_cache, number, split=split):
            for i, clip_id in enumerate(batch["id"].numpy()):
                record = records.pop(clip_id.decode())
                assert np.array_equal(batch["mel"][i], record.mel)
                assert np.array_equal(batch["tokens"][i], record.tokens)
                lengths = [int(batch[name][i]) for name in ("token_length", "mel_length")]
                assert lengths == [record.token_length, record.mel_length]
        assert not records
    assert read > 0


@pytest.mark.long
def test_read_cache_prints_the_shapes_and_imports_tensorflow_alone(tiny_cache):
    run = [sys.executable, "-X", "importtime", EXAMPLES / "read_cache.py", tiny_cache]
    result = subprocess.run(run, capture_output=True, text=True, check=True)
    for line, bucket in zip(result.stdout.splitlines(), load_spec(tiny_cache).buckets, strict=True):
        assert f"tokens int64[4, {bucket.tokens}]" in line
        assert f"mel float16[4, {bucket.frames}, 80]" in line
    assert "xtts." not in result.stderr


def test_own_model_learns_from_the_cache_and_is_compiled_once_per_bucket(tiny_cache):
    example = runpy.run_path(str(EXAMPLES / "own_model.py"))
    steps, counted = example["MeanSpectrumSteps"], []
    body = steps._train

    def counting(self, *batch):
        counted.append([part.shape for part in batch])
        return body(self, *batch)

    steps._train = counting
    losses = example["train"](tiny_cache, 60)
    assert len(losses) == 60
    assert np.mean(losses[-10:]) < 0.9 * losses[0]
    shapes = [(bucket.tokens, bucket.frames) for bucket in load_spec(tiny_cache).buckets]
    assert [(tokens[1], mel[1]) for tokens, mel, *_ in counted] == shapes


def test_train_and_speak_calls_the_five_names_as_they_are_defined(train_and_speak, monkeypatch, tmp_path):
    used = train_and_speak.__globals__
    for name in ("build_cache", "verify_cache", "train", "evaluate_checkpoint", "load_voice"):
        monkeypatch.setitem(used, name, create_autospec(used[name]))
    used["verify_cache"].return_value, used["evaluate_checkpoint"].return_value = [], {}
    used["load_voice"].return_value.sample_rate = 22_050
    used["load_voice"].return_value.speak.return_value.samples = np.ones(9)
    samples, rate = soundfile.read(train_and_speak(tmp_path / "corpus", tmp_path, "ab cd", MICRO))
    assert (len(samples), rate) == (9, 22_050)
    assert used["build_cache"].call_args.args == (tmp_path / "corpus", tmp_path / "features")
    assert used["train"].call_args.args == (tmp_path / "features",)


@pytest.mark.long
def test_train_and_speak_trains_and_speaks(train_and_speak, capsys, tiny_corpus, tmp_path):
    samples, rate = soundfile.read(train_and_speak(tiny_corpus, tmp_path, "ab cd", MICRO))
    assert rate == 22_050
    assert len(samples) > 0
    assert np.isfinite(samples).all()
    screen = capsys.readouterr().out
    assert "24 clips in 1 shapes" in screen
    assert f"{tmp_path / 'run'}: step 2" in screen
    assert "synthesised: MCD" in screen
