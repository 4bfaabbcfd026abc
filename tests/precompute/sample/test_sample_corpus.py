"""The sample corpus: own sentences, spoken; repeatable, extendable, safe to interrupt."""

import json
import signal
import statistics
import subprocess
import sys
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import soundfile
from builds import tree

from xtts.precompute.corpus.listing import read_corpus
from xtts.precompute.sample import voices
from xtts.precompute.sample.sample_corpus import make_sample_corpus
from xtts.precompute.sample.sentences import sentences
from xtts.shared.errors import LockstepError

pytest.importorskip("espeakng_loader")

SEED, CLIPS = 3, 40


def make(out, clips=CLIPS, seed=SEED, max_seconds=None, workers=0, **options):
    return make_sample_corpus(out, clips=clips, seed=seed, max_seconds=max_seconds, workers=workers, **options)


def recorded(folder):
    return json.loads((folder / "sample-corpus.json").read_bytes())


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """40 clips made without interruption by one process: do not change it."""
    folder = tmp_path_factory.mktemp("spoken") / "corpus"
    make(folder)
    return folder


def make_short(out, **options):
    return make(out, **{"clips": 3, "max_seconds": 2.0, **options})


@pytest.fixture
def small(tmp_path):
    make_short(tmp_path / "small")
    return tmp_path / "small"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"clips": 0}, "clips: 0, expected at least 1"),
        ({"max_seconds": 0.99}, r"max_seconds: 0\.99, expected at least 1\.0"),
        ({"clips": 2000, "max_seconds": 1.0}, r"only \d+ distinct ones are short enough, .*raise --max-seconds"),
        ({"metadata": Path("missing.csv")}, r"missing\.csv: no such file, expected lines of id\|text"),
        ({"metadata": Path("any.csv"), "max_seconds": 2.0}, r"max_seconds: 2\.0 with a metadata file, expected one or"),
        ({"language": "xx"}, "language: 'xx', expected one of cmn, de, en, es, fa, hi, ru"),
        ({"voice": "xx"}, "no voice 'xx', expected an espeak-ng voice such as"),
        ({"voice": "de+f99"}, "voice: no variant 'f99', expected one such as 'f3' or 'm2', as in"),
        ({"speaker": "a|b"}, r"speaker: 'a\|b' holds a column mark, expected a name without \|"),
    ],
)
def test_unusable_arguments_leave_nothing_behind(tmp_path, arguments, message):
    with pytest.raises(LockstepError, match=message):
        make(tmp_path / "out", **arguments)
    assert not (tmp_path / "out").exists()


def test_the_corpus_has_the_layout_and_the_lengths_of_ljspeech(corpus):
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


def test_a_whole_corpus_is_left_as_it_is_and_can_be_extended(small, tmp_path, monkeypatch):
    before, calls = {path: path.stat().st_mtime_ns for path in small.rglob("*")}, []
    with monkeypatch.context() as patch:
        patch.setattr(voices, "speak", None)
        summary = make_short(small, on_progress=lambda *call: calls.append(call))
    lengths = [soundfile.info(path).duration for path in (small / "wavs").iterdir()]
    assert max(lengths) <= 2.0
    assert (summary.clips, summary.spoken, summary.seconds) == (3, 0, pytest.approx(sum(lengths)))
    assert calls == [(3, 3, summary.seconds)]
    assert {path: path.stat().st_mtime_ns for path in small.rglob("*")} == before
    assert make_short(small, clips=5).spoken == 2
    make_short(tmp_path / "whole", clips=5)
    assert tree(small) == tree(tmp_path / "whole")


def test_a_killed_run_is_finished_by_the_next_to_the_same_bytes(corpus, tmp_path):
    out = tmp_path / "killed"
    code = f"""
import os, signal
from pathlib import Path
from xtts.precompute.sample.sample_corpus import make_sample_corpus
make_sample_corpus(Path({str(out)!r}), clips={CLIPS}, seed={SEED}, max_seconds=None, workers=2,
                   on_progress=lambda done, *_: os.kill(os.getpid(), signal.SIGKILL) if done else None)
"""
    # The pipes close with the last worker: this also fails when workers outlive their parent.
    killed = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60)
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    finished = len(list((out / "wavs").glob("*.wav")))
    assert 8 <= finished < CLIPS
    assert not (out / "metadata.csv").exists()
    (out / "wavs" / "demo-00040.wav.part").write_bytes(b"half a cl")
    summary = make(out)
    assert summary.spoken == CLIPS - finished
    assert tree(out) == tree(corpus)


def test_a_damaged_clip_is_spoken_again(small):
    before = tree(small)
    (small / "wavs/demo-00001.wav").unlink()
    (small / "wavs/demo-00002.wav").write_bytes(before["wavs/demo-00002.wav"][:3000])
    soundfile.write(small / "wavs/demo-00003.wav", np.zeros(16_000, np.int16), 16_000)
    assert make_short(small).spoken == 3
    assert tree(small) == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seed": 4}, f"a corpus with seed={SEED}, expected seed=4; choose another folder"),
        ({"clips": 2}, "a corpus with clips=3, expected clips=2"),
        ({"clips": 4, "seed": 4}, "a corpus with seed=3, clips=3, expected seed=4, clips=4"),
    ],
)
def test_a_corpus_of_other_arguments_is_refused_untouched(small, arguments, message):
    before = tree(small)
    with pytest.raises(LockstepError, match=message):
        make_short(small, **arguments)
    assert tree(small) == before
    (small / "metadata.csv").write_bytes(before["metadata.csv"].lower())
    with pytest.raises(LockstepError, match=r"metadata\.csv: not what these arguments give \(edited by hand\?\)"):
        make_short(small)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("out", "out: not a folder, expected a new folder or a sample corpus"),
        ("out/metadata.csv", r"holds metadata\.csv but no sample-corpus\.json, expected a corpus made by this command"),
        ("out/sample-corpus.json", r"sample-corpus\.json: unreadable, expected a JSON object"),
    ],
)
def test_a_foreign_folder_is_refused_untouched(tmp_path, name, message):
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"LJ001-0001|Printing|Printing\n")
    with pytest.raises(LockstepError, match=message):
        make(tmp_path / "out")
    assert tree(tmp_path) == {name: b"LJ001-0001|Printing|Printing\n"}


def test_given_transcripts_are_spoken_under_their_ids(tmp_path):
    given = tmp_path / "given.csv"
    given.write_bytes("LJ001-0001|5 francs.|Five francs.\r\n\nb|Café.|\nc|Two \u2028 lines\n".encode())
    summary = make(tmp_path / "out", clips=1, metadata=given)
    assert summary.clips == summary.spoken == 3
    listed = "LJ001-0001|5 francs.|Five francs.\nb|Café.|Café.\nc|Two \u2028 lines|Two \u2028 lines\n"
    assert (tmp_path / "out/metadata.csv").read_bytes() == listed.encode()
    samples, _ = soundfile.read(tmp_path / "out/wavs/LJ001-0001.wav", dtype="int16")
    np.testing.assert_array_equal(samples, voices.speak("Five francs."))
    assert make(tmp_path / "out", metadata=given).spoken == 0
    given.write_bytes(b"a|Guten Tag.\n")
    with pytest.raises(LockstepError, match="a corpus with metadata_sha256="):
        make(tmp_path / "out", metadata=given)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", r"given\.csv: no lines, expected lines of id\|text\|normalised text in UTF-8"),
        (b"a|b\n\xff|c\n", r"given\.csv: byte 4 is not UTF-8, expected lines of"),
        (b"a|fine\nno columns\n", r"given\.csv:2: 1 column, expected id\|text\|normalised text"),
        (b"a|fine\n../b|text\n", r"given\.csv:2: clip id '\.\./b' reads as a path, expected a plain file name"),
        (b"a|one\nb|two\na|three\n", r"given\.csv:3: clip id 'a' again, expected each id once"),
        (b"a|--|\n", r"given\.csv:1: nothing to speak in '--', expected a transcript"),
    ],
)
def test_an_unusable_metadata_file_is_named_by_line(tmp_path, data, message):
    (tmp_path / "given.csv").write_bytes(data)
    with pytest.raises(LockstepError, match=message):
        make(tmp_path / "out", metadata=tmp_path / "given.csv")
    assert not (tmp_path / "out").exists()


def test_language_voice_and_speaker_are_recorded_written_and_heard(tmp_path):
    out, said = tmp_path / "out", {"language": "fa", "speaker": "Mina", "voice": "fa+f3"}
    make_short(out, **said)
    assert recorded(out).items() >= said.items()
    (clip, *_) = read_corpus(out).clips
    assert clip.speaker == "Mina"
    samples, _ = soundfile.read(out / "wavs/demo-00001.wav", dtype="int16")
    np.testing.assert_array_equal(samples, voices.speak(clip.text, "fa+f3"))
    assert make_short(out, **{**said, "clips": 4}).spoken == 1
    with pytest.raises(LockstepError, match=r"a corpus with .*language=fa, speaker=Mina.*language=None, speaker=None"):
        make_short(out, clips=4)
