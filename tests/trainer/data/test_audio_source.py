"""Batches straight from audio: those of the cache with mels, in the same order; what cannot be read is a blank clip."""

import shutil

import numpy as np
import pytest
import soundfile
import tensorflow as tf
from cache_files import index_path
from one_bucket import one_bucket

from xtts.precompute.build.build_cache import build_cache
from xtts.precompute.workers.progress import NullProgress
from xtts.shared.audio.mel import MEL_TOLERANCE
from xtts.shared.cache.cache_spec import load_spec
from xtts.shared.cache.clip_index import read_index
from xtts.shared.config_files import load_config
from xtts.trainer.data.audio_mel import mel_in_step
from xtts.trainer.data.batch import Batch
from xtts.trainer.data.dataset import training_batches, validation_batches
from xtts.trainer.doctor.checks.graph import dataset_ops, python_ops

SETTINGS = {"shapes.buckets": 2, "split.validation_fraction": 0.2, "shards.mel_dtype": "float32"}


def build(corpus, cache, index_only, **settings):
    config = load_config("tiny", flags={**SETTINGS, **settings})
    build_cache(corpus, cache, config, workers=0, progress=NullProgress(), index_only=index_only)
    return cache


@pytest.fixture(scope="module")
def corpus(tmp_path_factory, tone_corpus):
    """Two corpora of other lengths in folders of their own, two speakers in one of them."""
    root = tmp_path_factory.mktemp("audio")
    first, second = tone_corpus(root / "first corpus", 12), tone_corpus(root / "second", 10, seed=4)
    lines = (second / "metadata.csv").read_text().splitlines()
    said = [f"{line}|{('Ann', 'Bob')[place % 2]}" for place, line in enumerate(lines)]
    (second / "metadata.csv").write_text("\n".join(said) + "\n")
    return [f"a={first}", f"b={second}"]


@pytest.fixture(scope="module")
def caches(tmp_path_factory, corpus):
    """(with float32 mels, without mels) of the two corpora."""
    root = tmp_path_factory.mktemp("caches")
    return tuple(build(corpus, root / str(kind), index_only=kind) for kind in (False, True))


@pytest.mark.parametrize("samples", [False, True])
def test_rows_of_the_stream_are_those_of_the_whole_batch(caches, samples):
    bucket = one_bucket(caches[1], batch_size=4, mel_on_device=samples)
    whole, part = iter(training_batches(bucket, 3)), iter(training_batches(bucket, 3, range(1, 3)))
    for _ in range(3):
        for found, expected in zip(next(part), next(whole), strict=True):
            np.testing.assert_array_equal(found, expected[1:3])


def with_mels(batches, spec):
    step = mel_in_step(spec)
    return [step(batch) for batch in batches]


def assert_same(found, expected):
    assert len(found) == len(expected) > 0
    for batch, other in zip(found, expected, strict=True):
        for name in ("tokens", "token_length", "mel_length", "speaker", "language"):
            np.testing.assert_array_equal(getattr(batch, name), getattr(other, name), err_msg=name)
        mask = np.asarray(other.mel_length) > 0
        np.testing.assert_allclose(batch.mel[mask], other.mel[mask], atol=MEL_TOLERANCE, rtol=0)


@pytest.mark.parametrize("on_device", [False, True])
def test_batches_are_those_of_the_cache(caches, on_device):
    cached, spec = caches[0], load_spec(caches[1])
    speakers = set[int]()
    for number in range(len(spec.buckets)):
        ours = one_bucket(caches[1], number, batch_size=3, mel_on_device=on_device)
        theirs = one_bucket(cached, number, batch_size=3)
        for consumed in (0, 7):
            found = with_mels(training_batches(ours, consumed).take(5), spec)
            expected = list(training_batches(theirs, consumed).take(5))
            assert_same(found, expected)
            speakers |= {int(speaker) for batch in expected for speaker in batch.speaker}
        if ours.validates:
            assert_same(with_mels(validation_batches(ours), spec), list(validation_batches(theirs)))
    assert len(speakers) > 1


def test_the_signature_is_locked_and_no_python_runs(caches):
    for on_device, name in ((False, "mel"), (True, "samples")):
        bucket = one_bucket(caches[1], batch_size=2, mel_on_device=on_device)
        assert bucket.signature.is_locked
        assert bucket.signature.mel.name == name
        for dataset in (training_batches(bucket, 3), validation_batches(bucket)):
            assert all(a.shape == b.shape and a.dtype == b.dtype
                       for a, b in zip(dataset.element_spec, bucket.signature, strict=True))  # fmt: skip
            ops = list(dataset_ops(dataset))
            assert any("DecodeWav" in kind for kind, _ in ops)
            assert not python_ops(ops)


def broken(wav, how):
    """Break a wav of the corpus as `how` says."""
    samples, rate = soundfile.read(wav, dtype="int16")
    if how == "deleted":
        wav.unlink()
    elif how == "truncated":
        wav.write_bytes(wav.read_bytes()[:-100])
    elif how == "noise":
        wav.write_bytes(b"\x07" * wav.stat().st_size)
    elif how == "empty":
        wav.write_bytes(b"")
    elif how == "folder":
        wav.unlink()
        wav.mkdir()
    elif how == "other rate":
        soundfile.write(wav, samples, rate + 1)
    elif how == "other length":
        soundfile.write(wav, samples[:-1], rate)
    elif how == "stereo":
        soundfile.write(wav, np.stack([samples, samples], 1), rate)


@pytest.fixture(scope="module")
def alone(tmp_path_factory, tiny_corpus):
    """(a corpus of the tests' own, its cache without mels); a test puts back what it breaks."""
    root = tmp_path_factory.mktemp("alone")
    corpus = shutil.copytree(tiny_corpus, root / "corpus")
    return corpus, build(corpus, root / "features", index_only=True, **{"split.validation_fraction": 0.0})


HOW = ("deleted", "truncated", "noise", "empty", "folder", "other rate", "other length", "stereo")


@pytest.mark.parametrize(("how", "on_device"), [*((how, False) for how in HOW), ("deleted", True), ("stereo", True)])
def test_a_broken_wav_is_a_blank_clip_and_the_others_stay(alone, how, on_device):
    corpus, cache = alone
    bucket = one_bucket(cache, batch_size=2, mel_on_device=on_device)
    whole = [Batch(*map(np.asarray, batch)) for batch in training_batches(bucket, 0).take(3)]
    wav = corpus / sources(cache, bucket)[bucket.order.locate(0, 1)[0]]
    before = wav.read_bytes()
    broken(wav, how)
    try:
        found = [Batch(*map(np.asarray, batch)) for batch in training_batches(bucket, 0).take(3)]
    finally:
        if wav.is_dir():
            wav.rmdir()
        wav.write_bytes(before)
    for part, other in zip(found[0], whole[0], strict=True):
        assert not part[0].any()
        np.testing.assert_array_equal(part[1], other[1])
    for batch, other in zip(found[1:], whole[1:], strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(batch, other, strict=True))


def sources(cache, bucket):
    """(shard, record) of the training clips of a bucket to their wavs."""
    rows = read_index(index_path(cache))
    ours = [row for row in rows if (row.place.split, row.place.bucket) == ("train", bucket.number)]
    return {(row.place.shard, row.written.position): row.clip.source for row in ours}


def test_the_step_masks_what_follows_a_clip(caches):
    """The frames that reach over the end of a clip hold samples; they are silence after the step's mel."""
    spec = load_spec(caches[1])
    bucket = one_bucket(caches[1], batch_size=4, mel_on_device=True)
    batch = next(iter(training_batches(bucket, 0)))
    mel = mel_in_step(spec)(batch).mel.numpy()
    for row, length in zip(mel, batch.mel_length.numpy(), strict=True):
        assert (row[length:] == np.float32(spec.mel_profile.silence)).all()
    assert tf.reduce_any(batch.mel_length < bucket.stored.frames)
