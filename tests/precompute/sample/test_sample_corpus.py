"""The sample corpus: own sentences, spoken; repeatable, safe to interrupt."""

import signal
import statistics
import subprocess
import sys
from itertools import islice

import numpy as np
import pytest
import soundfile
from builds import Listener, read_corpus, tree

from xtts.precompute.sample.espeak import speak
from xtts.precompute.sample.sample_corpus import make_sample_corpus
from xtts.precompute.sample.sentences import sentences
from xtts.precompute.workers.worker_pool import Progress
from xtts.shared.errors import LockstepError

pytest.importorskip("espeakng_loader")

SEED, CLIPS = 3, 40


def make(out, clips=3, seed=SEED, workers=0, progress=None, **options):
    return make_sample_corpus(out, clips=clips, seed=seed, workers=workers, progress=progress or Progress(), **options)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """40 clips made without interruption by one process: do not change it."""
    folder = tmp_path_factory.mktemp("spoken") / "corpus"
    make(folder, CLIPS)
    return folder


@pytest.fixture
def small(tmp_path):
    make(tmp_path / "small")
    return tmp_path / "small"


def test_the_corpus_has_the_layout_and_lengths_of_ljspeech(corpus):
    rows = [line.split("|") for line in (corpus / "metadata.csv").read_text(encoding="utf-8").splitlines()]
    wanted = enumerate(islice(sentences(SEED), CLIPS), start=1)
    assert rows == [[f"demo-{number:05d}", sentence.raw, sentence.normalised] for number, sentence in wanted]
    assert [clip.text for clip in read_corpus(corpus).clips] == [row[2] for row in rows]
    assert {path.stem for path in (corpus / "wavs").iterdir()} == {row[0] for row in rows}
    infos = [soundfile.info(path) for path in (corpus / "wavs").iterdir()]
    formats = {(info.samplerate, info.channels, info.format, info.subtype) for info in infos}
    assert formats == {(22_050, 1, "WAV", "PCM_16")}
    lengths = [info.duration for info in infos]
    assert min(lengths) > 0.8
    assert max(lengths) <= 10.1
    assert 5.0 < statistics.median(lengths) < 8.0


def test_a_killed_run_is_continued_to_the_same_bytes(corpus, tmp_path):
    out, listener = tmp_path / "killed", Listener()
    code = f"""
import os, signal
from pathlib import Path
from xtts.precompute.sample.sample_corpus import make_sample_corpus
from xtts.precompute.workers.worker_pool import Progress
class Killer(Progress):
    def advance(self, clips, seconds):
        os.kill(os.getpid(), signal.SIGKILL)
make_sample_corpus(Path({str(out)!r}), clips={CLIPS}, seed={SEED}, workers=2, progress=Killer())
"""
    # The pipes close with the last worker: this also fails when workers outlive their parent.
    killed = subprocess.run([sys.executable, "-c", code], capture_output=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    finished = len(list((out / "wavs").glob("*.wav")))
    assert 8 <= finished < CLIPS
    assert not (out / "metadata.csv").exists()
    (out / "wavs" / "demo-00040.wav.part").write_bytes(b"half a cl")
    make(out, CLIPS, progress=listener)
    assert listener.stages == {"speech": CLIPS - finished}
    assert tree(out) == tree(corpus)


def test_a_complete_corpus_is_not_rewritten_and_one_of_other_arguments_rejected(small):
    before = {path: path.stat().st_mtime_ns for path in small.rglob("*")}
    seconds = make(small)
    lengths = [soundfile.info(path).duration for path in (small / "wavs").iterdir()]
    assert (len(lengths), seconds) == (3, pytest.approx(sum(lengths)))
    for arguments, message in (
        ({"language": "de"}, "a corpus with language=en, expected language=de"),
        ({"seed": 4}, f"a corpus with seed={SEED}, expected seed=4; choose another folder, or delete this one"),
        ({"clips": 4, "seed": 4}, "a corpus with clips=3, expected clips=4"),
    ):
        with pytest.raises(LockstepError, match=message):
            make(small, **arguments)
    assert {path: path.stat().st_mtime_ns for path in small.rglob("*")} == before


@pytest.mark.parametrize("name", ["out", "out/metadata.csv", "out/sample-corpus.json"])
def test_an_unrelated_folder_is_rejected_untouched(tmp_path, name):
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"LJ001-0001|Printing|Printing\n")
    with pytest.raises(LockstepError, match=r"already, without a readable sample-corpus\.json, expected a new folder"):
        make(tmp_path / "out")
    assert tree(tmp_path) == {name: b"LJ001-0001|Printing|Printing\n"}


def test_the_language_selects_text_and_voice(tmp_path):
    out = tmp_path / "out"
    with pytest.raises(LockstepError, match="language: 'xx', expected one of cmn, de, en, es, fa, hi, ru"):
        make(out, language="xx")
    assert not out.exists()
    make(out, language="fa")
    (clip, *_) = read_corpus(out).clips
    samples, _ = soundfile.read(out / "wavs/demo-00001.wav", dtype="int16")
    np.testing.assert_array_equal(samples, speak(clip.text, "fa"))
