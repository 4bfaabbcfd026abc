"""Takes on the disk: whole, numbered by their prompts, and a corpus that the build reads."""

import errno
import os
import shutil
import threading

import numpy as np
import pytest
from record_parts import PROMPTS, RATE, spoken, wav_of

from xtts.precompute.corpus.listing import read_corpus
from xtts.shared.errors import LockstepError
from xtts.trainer.record.takes import Takes, read_wav, trimmed


@pytest.fixture
def takes(tmp_path):
    return Takes(tmp_path, PROMPTS)


def sound(name="arctic_a0232", **silence):
    return read_wav(wav_of(spoken(name, **silence)))


def files(folder):
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_a_take_has_its_prompts_number_and_line_whatever_the_order(takes):
    assert [takes.store(PROMPTS[i], *sound()) for i in (2, 0, 2)] == [3, 1, 3]
    assert (takes.folder / "metadata.csv").read_text() == f"0001|{PROMPTS[0]}\n0003|{PROMPTS[2]}\n"
    assert files(takes.folder) == ["0001.wav", "0003.wav", "metadata.csv"]
    assert Takes(takes.folder, PROMPTS).texts() == {1: PROMPTS[0], 3: PROMPTS[2]}
    takes.remove(1)
    assert (takes.folder / "metadata.csv").read_text() == f"0003|{PROMPTS[2]}\n"
    assert files(takes.folder) == ["0003.wav", "metadata.csv"]


def test_the_build_reads_takes_as_a_corpus_beside_what_training_leaves(takes):
    for text in PROMPTS:
        takes.store(text, *sound())
    for name in ("features", "run/voice"):
        (takes.folder / name).mkdir(parents=True)
    (takes.folder / "voice.log").write_text("42\n")
    corpus = read_corpus(takes.folder)
    assert corpus.clips["id"].to_pylist() == [f"{number:04d}" for number in range(1, 6)]
    assert corpus.clips["text"].to_pylist() == PROMPTS
    assert corpus.notes == ()


def test_other_prompts_in_the_same_folder_mix_no_takes(takes):
    takes.store(PROMPTS[0], *sound())
    others = Takes(takes.folder, ["Something else.", PROMPTS[0], "A third."])
    assert [others.store(text, *sound()) for text in others.prompts] == [4, 1, 3]
    (takes.folder / "metadata.csv").write_text("mine|By hand.\n" + (takes.folder / "metadata.csv").read_text())
    others.remove(3)
    assert (takes.folder / "metadata.csv").read_text().splitlines() == [
        f"0001|{PROMPTS[0]}", "0004|Something else.", "mine|By hand.",
    ]


def test_a_full_disk_keeps_the_earlier_take_and_its_line(takes, monkeypatch):
    takes.store(PROMPTS[0], *sound())
    before = takes.wav(1).read_bytes()

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as disk:
        disk.setattr(os, "fsync", full)
        for text in PROMPTS[:2]:
            with pytest.raises(OSError, match="No space left"):
                takes.store(text, *sound("arctic_b0179"))
    assert takes.wav(1).read_bytes() == before
    assert files(takes.folder) == ["0001.wav", "metadata.csv"]
    takes.store(PROMPTS[0], *sound("arctic_b0179"))
    assert takes.wav(1).read_bytes() != before


def test_a_take_that_was_killed_on_its_way_is_no_take(takes):
    """After the recording is renamed and before the list is; the rest of an earlier death lies beside."""
    takes.store(PROMPTS[0], *sound())
    shutil.copy(takes.wav(1), takes.wav(2))
    (takes.wav(3).with_suffix(".wav.part")).write_bytes(b"RIFF")
    assert Takes(takes.folder, PROMPTS).texts() == {1: PROMPTS[0]}
    takes.store(PROMPTS[1], *sound())
    assert takes.texts() == {1: PROMPTS[0], 2: PROMPTS[1]}


def test_two_tabs_at_once_lose_no_take(takes):
    threads = [threading.Thread(target=takes.store, args=(text, *sound())) for text in PROMPTS * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert takes.texts() == dict(enumerate(PROMPTS, 1))


def test_of_the_silence_at_the_ends_0_4_s_stay_and_the_speech_is_untouched():
    samples, rate = sound(before=2.0, after=3.0)
    cut = trimmed(samples, rate)
    assert len(cut) / rate == pytest.approx(2.07 + 0.8, abs=0.4)
    assert np.abs(np.lib.stride_tricks.sliding_window_view(samples, len(cut))[::960] - cut).sum(axis=1).min() == 0
    short, _ = sound(before=0.2, after=0.1)
    assert trimmed(short, rate) is not None
    assert len(trimmed(short, rate)) == len(short)
    silence = np.zeros(RATE, np.int16)
    assert len(trimmed(silence, RATE)) <= len(silence)


@pytest.mark.parametrize(("data", "words"), [
    (b"", "recording: empty audio|recording: unreadable"), (b"<html>", "recording: unreadable audio"),
    (wav_of(np.zeros(10), 22_050), r"int16, 1 channels, 22050 Hz, expected int16, one channel, 44100 Hz or more"),
    (wav_of(np.zeros([10, 2])), "int16, 2 channels"), (wav_of(np.zeros(10), subtype="FLOAT"), "float32, 1 channels"),
    (wav_of(np.zeros(100))[:-50], "cut off: "), (wav_of(np.zeros(0)), "empty audio: no samples"),
])
def test_what_is_no_take_is_refused(data, words):
    with pytest.raises(LockstepError, match=words):
        read_wav(data)
