"""One long recording: pieces beside prompts, by words alone, and by Whisper from a file of a phone."""

import shutil
import subprocess
import time

import numpy as np
import pytest
import soundfile
from record_parts import PROMPTS, RATE, spoken, wav_of

from xtts.trainer.record.app import Recorder
from xtts.trainer.record.making import VoiceMaker
from xtts.trainer.record.phone import Ear, PhoneRecording, likeness, match_prompts
from xtts.trainer.record.takes import Takes, read_wav


def match(words, prompts):
    return match_prompts(words, prompts, lambda text: [*text.lower().replace(" ", "")])


def test_pieces_find_their_prompts_in_any_order_the_last_reading_first():
    pieces = ["hello", "i can not follow you", "uh", "their supply of", "grub was gone", "i cannot follow you she sat"]
    assert match(pieces, [*PROMPTS, "Hello!"]) == {PROMPTS[2]: (3, 4), PROMPTS[0]: (5, 5), "Hello!": (0, 0)}
    assert match(["something else", ""], PROMPTS) == {}
    assert match(["hello", "hello"], ["Hello!"]) == {"Hello!": (1, 1)}


def test_numbers_are_like_their_words():
    pytest.importorskip("espeakng_loader")
    assert likeness("28 students passed.", "Twenty-eight students passed.", "en") > 0.9
    assert likeness("Goodbye.", "Twenty-eight students passed.", "en") < 0.5


@pytest.mark.long
@pytest.mark.parametrize("form", ["wav", "m4a"])
def test_a_recording_of_a_phone_is_cut_at_its_prompts(tmp_path, whisper_folder, form):
    samples = np.concatenate([spoken(name, 1.0, 1.0) for name in ("arctic_b0322", "arctic_a0232", "arctic_a0534")])
    (path := tmp_path / "phone.wav").write_bytes(wav_of(samples))
    if form == "m4a":
        if not shutil.which("ffmpeg"):
            pytest.skip("no ffmpeg here, which writes m4a")
        subprocess.run(["ffmpeg", "-v", "error", "-i", path, tmp_path / "phone.m4a"], check=True)
        path = tmp_path / "phone.m4a"
    takes = Takes(tmp_path / "my-voice", PROMPTS)
    phone = PhoneRecording(takes, Ear("en", str(whisper_folder)))
    assert sorted(phone.cut(path)) == [1, 3, 4]
    assert takes.texts() == {1: PROMPTS[0], 3: PROMPTS[2], 4: PROMPTS[3]}
    lengths = [soundfile.info(takes.wav(number)).duration for number in (1, 3, 4)]
    assert 1.5 < min(lengths) < max(lengths) < 3.2
    assert soundfile.info(takes.wav(1)).samplerate == RATE


@pytest.mark.long
def test_whispers_words_stand_beside_a_take(tmp_path, whisper_folder):
    folder = tmp_path / "my-voice"
    recorder = Recorder(Takes(folder, PROMPTS), "en", VoiceMaker(folder, "en", ()), Ear("en", str(whisper_folder)))
    for text in PROMPTS[:2]:  # the second is a slip
        number, samples = recorder.takes.store(text, *read_wav(wav_of(spoken("arctic_a0232")))), spoken("arctic_a0232")
        version = recorder.takes.wav(number).stat().st_mtime_ns
        recorder.listener.add(number, version, np.asarray(32767 * samples, np.int16), RATE)
    while not all(take["heard"] for take in recorder.checked_takes()):
        time.sleep(0.05)
    worst, best = recorder.checked_takes()
    assert (worst["number"], best["number"], best["advice"]) == (2, 1, "")
    assert "Whisper heard: I cannot follow you" in worst["advice"]
