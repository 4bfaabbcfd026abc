"""Straight from audio: the batches of the cache with mels, in the same order; what cannot be read is a padding row."""

import shutil

import numpy as np
import pytest
import soundfile
from cache_files import build_cache, index_path
from graph_walk import PYTHON_OPS, dataset_ops
from one_bucket import one_bucket

from xtts.shared.audio.mel import MEL_TOLERANCE
from xtts.shared.cache.clip_index import read_index
from xtts.shared.config_files import load_config
from xtts.trainer.data.audio_mel import mel_in_step
from xtts.trainer.data.batch import is_locked
from xtts.trainer.data.dataset import training_batches, validation_batches

SETTINGS = {"shapes.buckets": 2, "split.validation_fraction": 0.2, "shards.mel_dtype": "float32"}


def build(corpus, cache, index_only, **settings):
    config = load_config("tiny", flags={**SETTINGS, **settings})
    build_cache(corpus, cache, config, index_only=index_only)
    return cache


@pytest.fixture(scope="module")
def caches(tmp_path_factory, tone_corpus):
    """(with float32 mels, without) of two corpora in folders of their own, with two speakers in one of them."""
    root = tmp_path_factory.mktemp("audio")
    first, second = tone_corpus(root / "first corpus", 8), tone_corpus(root / "second", 8, seed=4)
    lines = (second / "metadata.csv").read_text().splitlines()
    said = [f"{line}|{('Ann', 'Bob')[place % 2]}" for place, line in enumerate(lines)]
    (second / "metadata.csv").write_text("\n".join(said) + "\n")
    return tuple(build([f"a={first}", f"b={second}"], root / str(kind), index_only=kind) for kind in (False, True))


def assert_same(batches, others, spec):
    """The same clips; the mels also in the frames after their ends, which are silent."""
    found, expected = [mel_in_step(batch, spec) for batch in batches], list(others)
    assert len(found) == len(expected) > 0
    for batch, other in zip(found, expected, strict=True):
        for name in ("tokens", "token_length", "mel_length", "speaker", "language"):
            np.testing.assert_array_equal(getattr(batch, name), getattr(other, name), err_msg=name)
        mask = np.asarray(other.mel_length) > 0
        np.testing.assert_allclose(batch.mel[mask], other.mel[mask], atol=MEL_TOLERANCE, rtol=0)
    assert any((batch.mel_length.numpy() < batch.mel.shape[1]).any() for batch in found)


@pytest.mark.parametrize("number", [0, 1])
def test_batches_are_those_of_the_cache(caches, number):
    ours = one_bucket(caches[1], number, batch_size=3)
    theirs = one_bucket(caches[0], number, batch_size=3)
    dataset, expected = training_batches(ours, 7), list(training_batches(theirs, 7).take(3))
    assert_same(dataset.take(3), expected, ours.spec)
    assert len({int(speaker) for batch in expected for speaker in batch.speaker}) > 1
    if number:
        assert ours.validates
        assert_same(validation_batches(ours), validation_batches(theirs), ours.spec)
    assert is_locked(ours.signature)
    assert [(part.shape, part.dtype) for part in dataset.element_spec] == [(p.shape, p.dtype) for p in ours.signature]
    ops = dataset_ops(dataset)
    assert any("DecodeWav" in kind for kind in ops)
    assert not ops & {*PYTHON_OPS}


def rewritten(change, faster=0):
    """What writes a wav anew, with other samples or another rate."""

    def write(wav):
        samples, rate = soundfile.read(wav, dtype="int16")
        soundfile.write(wav, change(samples), rate + faster)

    return write


BREAK = {
    "deleted": lambda wav: wav.unlink(),
    "truncated": lambda wav: wav.write_bytes(wav.read_bytes()[:-100]),
    "noise": lambda wav: wav.write_bytes(b"\x07" * wav.stat().st_size),
    "other rate": rewritten(lambda samples: samples, faster=1),
    "other length": rewritten(lambda samples: samples[:-1]),
    "stereo": rewritten(lambda samples: np.stack([samples, samples], 1)),
}


@pytest.fixture(scope="module")
def alone(tmp_path_factory, tiny_corpus):
    """(a corpus of the tests' own, its cache without mels); a test puts back what it breaks."""
    root = tmp_path_factory.mktemp("alone")
    corpus = shutil.copytree(tiny_corpus, root / "corpus")
    return corpus, build(corpus, root / "features", index_only=True, **{"split.validation_fraction": 0.0})


@pytest.mark.parametrize("samples", [False, True], ids=["mels of the cache", "samples"])
def test_rows_of_the_stream_are_those_of_the_whole_batch(tiny_cache, alone, samples):
    bucket = one_bucket(alone[1] if samples else tiny_cache, batch_size=4)
    whole, part = iter(training_batches(bucket, 3)), iter(training_batches(bucket, 3, range(1, 3)))
    for _ in range(3):
        for found, expected in zip(next(part), next(whole), strict=True):
            np.testing.assert_array_equal(found, expected[1:3])


def test_broken_wavs_are_blank_clips_and_the_others_stay(alone):
    corpus, cache = alone
    bucket = one_bucket(cache, batch_size=len(BREAK) + 2)

    def read():
        return next(iter(training_batches(bucket, 0)))

    whole = read()
    rows = [row for row in read_index(index_path(cache)) if row.bucket == bucket.number]
    sources = {(row.shard, row.position): row.clip.source for row in rows}
    wavs = [corpus / sources[place] for place in bucket.order.records_from(0, len(BREAK))]
    before = [wav.read_bytes() for wav in wavs]
    for wav, break_it in zip(wavs, BREAK.values(), strict=True):
        break_it(wav)
    try:
        found = read()
    finally:
        for wav, data in zip(wavs, before, strict=True):
            wav.write_bytes(data)
    for part, other in zip(found, whole, strict=True):
        for row, how in enumerate(BREAK):
            assert not part[row].numpy().any(), how
        np.testing.assert_array_equal(part[len(BREAK) :], other[len(BREAK) :])
    assert all(whole.mel_length.numpy() > 0)
