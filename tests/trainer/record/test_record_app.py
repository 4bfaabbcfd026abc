"""The recorder's server: takes and their faults, the room, the guard, what it refuses."""

import errno
import io
import zipfile

import numpy as np
import pytest
from record_parts import PROMPTS, RATE, spoken, wav_of

from xtts.shared.system.folder_lock import exclusive
from xtts.trainer.record.cli import main


def advice(answer, prompt):
    assert answer.status_code == 200, answer.text
    return next(take["advice"] for take in answer.json()["takes"] if take["text"] == prompt)


def test_a_take_is_stored_listed_heard_and_removed(client, send, recorder):
    stored = send(PROMPTS[2], spoken("arctic_b0322"))
    assert stored.json()["number"] == 3
    assert advice(stored, PROMPTS[2]) == ""
    sound = client.get("/api/takes/3.wav")
    assert sound.headers["content-type"] == "audio/wav"
    assert sound.content == recorder.takes.wav(3).read_bytes()
    state = client.get("/api/state").json()
    assert state["prompts"] == PROMPTS
    assert [take["number"] for take in state["takes"]] == [3]
    assert client.delete("/api/takes/3").json() == {"takes": []}
    assert client.get("/api/takes/3.wav").status_code == 404
    assert "no take 3" in client.delete("/api/takes/3").text


NOISE = np.random.default_rng(0)
FAULTS = {
    "silence: the microphone sent nothing": lambda speech: 0 * speech,
    "clipped: move back": lambda speech: np.clip(20 * speech, -1, 1),
    "too quiet": lambda speech: 0.1 * speech,
    "noisy, only": lambda speech: speech + NOISE.normal(0, 0.01, len(speech)),
    "cut off at the beginning": lambda speech: speech[round(1.4 * RATE) :],
    "cut off at the end": lambda speech: speech[: round(2.2 * RATE)],
    "far longer than the sentence": lambda speech: np.r_[speech[:-RATE], speech[RATE:-RATE], speech[RATE:]],
    "far shorter than the sentence": lambda speech: np.concatenate(
        [speech[: round(1.7 * RATE)], 0.001 * speech[-RATE:]]
    ),
}


@pytest.mark.parametrize("words", FAULTS)
def test_every_fault_of_a_take_is_named(send, words):
    assert words in advice(send(PROMPTS[0], FAULTS[words](spoken("arctic_a0232"))), PROMPTS[0])


def test_the_worst_take_is_first_and_the_reader_has_a_pace(send):
    """Five readings at half our voice's speed are usual; a sixth thing, said in a fraction of the time, is not."""
    good, slow = spoken("arctic_a0232"), np.repeat(spoken("arctic_a0232"), 2)
    send(PROMPTS[1], 0.1 * good)
    takes = send(PROMPTS[0], 0 * good).json()["takes"]
    assert [take["text"] for take in takes] == [PROMPTS[0], PROMPTS[1]]
    assert "far longer" in advice(send(PROMPTS[0], slow), PROMPTS[0])
    for prompt in PROMPTS:
        answer = send(prompt, slow)
    assert advice(answer, PROMPTS[0]) == ""


def test_the_room_is_judged_in_words_and_its_recording_is_not_kept(client, recorder):
    def judge(samples):
        headers = {"Content-Type": "audio/wav"}
        return client.post("/api/room", content=wav_of(samples), headers=headers).json()

    speech = spoken("arctic_a0232", before=6.0)
    good = judge(speech)
    assert good["good"] is True
    assert good["words"].startswith("Good. Level -")
    fan = judge(speech + np.random.default_rng(0).normal(0, 0.01, len(speech)))
    assert fan["good"] is False
    assert "switch the fan off" in fan["words"]
    assert "move closer, or raise" in judge(0.05 * speech)["words"]
    assert "clipped" in judge(np.clip(30 * speech, -1, 1))["words"]
    assert "sends nothing" in judge(0 * speech)["words"]
    assert [*recorder.takes.folder.iterdir()] == []


def test_another_server_is_refused(client, recorder, call):
    """That a restart finds all takes: test_takes.py."""
    with exclusive(recorder.takes.folder):
        code, _, errors = call(main, recorder.takes.folder, "--no-open", "--port", 0)
    assert code == 2
    assert "another process is at work in this folder; wait for it to end, or stop it" in errors


def test_too_long_a_take_an_unknown_prompt_and_a_full_disk_are_refused_in_words(send, monkeypatch):
    speech = spoken("arctic_a0232")
    assert send(PROMPTS[0], b"\0" * (2**23 + 1)).status_code == 413
    answer = send("../../etc/passwd", speech)
    assert (answer.status_code, "is not among the prompts" in answer.text) == (400, True)

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("xtts.trainer.record.takes.atomic_files.write", full)
    answer = send(PROMPTS[0], speech)
    assert (answer.status_code, answer.json()["error"]["message"]) == (507, "not saved: No space left on device")


def test_the_recordings_are_downloaded_and_voices_only_when_there_are(client, send):
    send(PROMPTS[0], spoken("arctic_a0232"))
    archive = zipfile.ZipFile(io.BytesIO(client.get("/api/downloads/recordings").content))
    assert archive.namelist() == ["metadata.csv", "wavs/0001.wav"]
    for path in ("downloads/voice", "downloads/piper", "listen"):
        assert "no voice has been made yet" in client.get(f"/api/{path}").text
    assert client.get("/api/downloads/other").status_code == 404
    answer = client.post("/api/voice")
    assert (answer.status_code, answer.json()["error"]["message"]) == (409, "record 20 sentences first")


def test_the_page_and_its_files_have_the_policy_of_every_page(client):
    """By the guard, which also refuses foreign pages: test_serve_limits.py."""
    for path in ("/", "/page.css", "/parts.js", "/record.js", "/microphone.js", "/worklet.js", "/record.css"):
        answer = client.get(path)
        assert answer.status_code == 200
        assert "default-src 'self'" in answer.headers["content-security-policy"]
