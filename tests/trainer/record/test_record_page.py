"""The recorder in a real browser, whose microphone plays a recording: by keys alone, through reload and death."""

import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import soundfile
from record_parts import PROMPTS, RATE, spoken, wav_of
from scipy.signal import correlate
from web_browser import ENTER, browser

from xtts.trainer.record.takes import Takes

pytestmark = pytest.mark.long
SAID = "document.getElementById('status').textContent"
LEFT, RIGHT = "\ue012", "\ue014"
SPEECH = spoken("arctic_a0232", before=0.0, after=0.0)


@contextmanager
def recording_server(folder, *arguments, port=0):
    """(address, process) of `xtts-record` in a process of its own."""
    command = [Path(sys.executable).with_name("xtts-record"), folder, "--no-open", "--port", port, *arguments]
    process = subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, text=True)
    try:
        yield next(found[1] for line in process.stdout if (found := re.match(r"record here: (\S+)/ ", line))), process
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def prompts(tmp_path):
    """A file of prompts that are about as long as what the microphone plays."""
    (file := tmp_path / "prompts.txt").write_text("\n".join(PROMPTS))
    return "--prompts", file


@pytest.fixture
def window(tmp_path):
    """A browser whose microphone plays seven seconds of a quiet room and a sentence, again and again."""
    (wav := tmp_path / "microphone.wav").write_bytes(wav_of(np.r_[spoken("arctic_a0232", 7.0, 0.0)]))
    with browser(tmp_path / "profile", f"--use-file-for-fake-audio-capture={wav}") as found:
        yield found


def begin(window, address):
    """Open the page, and pass the test of the microphone by one key."""
    window.open(f"{address}/")
    window.wait_for(f"{SAID}.startsWith('Press Start')")
    assert window.run("return document.activeElement.id") == "begin"
    window.press(ENTER)
    window.wait_for(f"/dBFS/.test({SAID})")
    assert window.run(f"return {SAID}").startswith("Good. Level -")
    assert window.run("return microphone.processing") == []
    window.run(Path(__file__).with_name("hearken.js").read_text())


def until_spoken(window):
    """Wait until the microphone has played its sentence once more."""
    began = window.run("return performance.now()")
    window.wait_for(f"window.loud > {began} && performance.now() > window.loud + 700")


def take(window, key=" ", answer="Saved, "):
    """Record what the microphone plays next, and wait until the page says so."""
    window.run("say('')")
    window.press(key)
    window.wait_for("microphone.parts")
    until_spoken(window)
    window.press(" ")
    window.wait_for(f"{SAID}.startsWith('{answer}')")


def likeness(path):
    """Median correlation of what was played, by parts of 0.3 s, with a take where each fits best.

    By parts, since a busy browser may drop a block of its false microphone.
    """
    samples, rate = soundfile.read(path)
    assert rate == RATE
    assert soundfile.info(path).subtype == "PCM_16"
    size, found = round(0.3 * RATE), []
    energy = np.cumsum(np.r_[0, samples**2])
    for start in range(0, len(SPEECH) - size, size):
        part = SPEECH[start : start + size]
        scale = np.sqrt(np.maximum(energy[size:] - energy[:-size], 1e-6) * np.sum(part**2))
        found.append(np.max(correlate(samples, part, "valid") / scale))
    return np.median(found)


def test_three_sentences_by_keys_alone_one_redone_one_skipped_one_after_a_reload(window, tmp_path, prompts):
    with recording_server(tmp_path / "my-voice", *prompts) as (address, _):
        begin(window, address)
        shown = window.run("return state.prompts")
        takes = Takes(tmp_path / "my-voice", shown)
        take(window)
        first = takes.wav(1).stat().st_mtime_ns
        assert window.run("return prompt.textContent") == shown[1]
        assert window.run("return document.activeElement.id") == "prompt"
        window.press("p")
        window.wait_for("player.src.includes('/takes/1.wav') && player.currentTime > 0")
        take(window, "r")
        assert takes.wav(1).stat().st_mtime_ns > first
        assert takes.texts() == {1: shown[0]}
        window.press("s")  # the second is skipped
        window.wait_for("position === 2")
        take(window)
        window.press(LEFT)
        window.wait_for("position === 2")
        window.press(" ")
        assert window.run(f"return {SAID}").startswith("This one is recorded")
        window.press(RIGHT)
        window.wait_for("position === 3")
        window.press(" ")  # and in the middle of the next the page is loaded again
        window.wait_for("microphone.parts")
        begin(window, address)
        assert window.run("return prompt.textContent") == shown[1], "the first that has no take"
        take(window)
        assert takes.texts() == {1: shown[0], 2: shown[1], 3: shown[2]}
        for number in (1, 2, 3):
            assert likeness(takes.wav(number)) > 0.9
            assert soundfile.info(takes.wav(number)).duration == pytest.approx(len(SPEECH) / RATE + 0.5, abs=0.5)
        assert window.complaints() == []


def test_continuous_recording_goes_on_by_itself(window, tmp_path, prompts):
    with recording_server(tmp_path / "my-voice", *prompts) as (address, _):
        begin(window, address)
        window.run("continuous.checked = true")
        window.press(" ")
        window.wait_for("state.takes.length === 2 && microphone.parts")
        window.press(" ")
        window.wait_for("!microphone.parts")
        takes = Takes(tmp_path / "my-voice", window.run("return state.prompts"))
        assert [round(likeness(takes.wav(number)), 2) for number in (1, 2)] == pytest.approx([1, 1], abs=0.1)


def test_a_take_on_its_way_to_a_killed_server_is_saved_by_the_next(window, tmp_path, prompts):
    folder = tmp_path / "my-voice"
    with recording_server(folder, *prompts) as (address, process):
        begin(window, address)
        os.kill(process.pid, signal.SIGSTOP)
        take(window, answer="")
        window.wait_for("unsaved.keys().then((keys) => keys.length) && !microphone.parts")
        process.kill()
        process.wait()
        window.wait_for("!document.getElementById('unsaved').hidden")
    assert "one recording" in window.run("return byId('unsaved-words').textContent")
    assert "is not saved yet" in window.run(f"return {SAID}")
    assert [*folder.rglob("*.wav")] == []
    with recording_server(folder, *prompts, port=address.rpartition(":")[2]):
        window.open(f"{address}/")
        window.wait_for("state?.takes.length === 1")
        assert window.run("return byId('unsaved').hidden")
    assert likeness(folder / "wavs/0001.wav") > 0.9


def test_a_narrow_page_and_a_prompt_from_right_to_left(window, tmp_path):
    with recording_server(tmp_path / "my-voice", "--language", "fa") as (address, _):
        begin(window, address)
        assert window.run("return [prompt.lang, getComputedStyle(prompt).direction]") == ["fa", "rtl"]
        window.chrome("Emulation.setDeviceMetricsOverride", width=320, height=640, deviceScaleFactor=1, mobile=True)
        assert window.run("return document.documentElement.scrollWidth") <= 320
        unnamed = "(field) => !field.labels?.length && !field.ariaLabel && !field.textContent.trim()"
        fields = "[...document.querySelectorAll('input, button, meter, progress')]"
        assert window.run(f"return {fields}.filter({unnamed}).length") == 0


def test_twenty_takes_become_a_voice_that_is_stopped_goes_on_and_speaks(window, tmp_path):
    folder = tmp_path / "my-voice"
    file = tmp_path / "prompts.txt"
    file.write_text("\n".join(f"{PROMPTS[i % 5][:-1]}, number {i}." for i in range(20)))
    clips = ("arctic_a0232", "arctic_b0179", "arctic_b0322", "arctic_a0534", "arctic_a0304")
    options = ("--prompts", file, "--", "--set", "training.steps=50", "--set", "training.steps_per_call=5")
    with recording_server(folder, *options) as (address, _):
        window.open(f"{address}/")
        window.wait_for("state?.takes.length === 0")
        takes = Takes(folder, window.run("return state.prompts"))
        for text in takes.prompts:
            i = int(re.search(r"number (\d+)", text)[1])
            takes.store(text, np.asarray(32767 * spoken(clips[i % 5]), np.int16), RATE)
        window.run("act('api/state')()")
        window.wait_for("!byId('make').disabled")
        window.run("byId('make').click()")
        window.wait_for("state.making.step > 4 && state.making.phase === 'training'")
        assert window.run("return [state.making.steps, byId('progress').max]") == [50, 50]
        assert re.match(r"Training: \d+%, about ", window.run("return byId('making').textContent"))
        window.run("byId('stop').click()")
        window.wait_for("state.making.phase === 'stopped'")
        assert window.run("return byId('make').textContent") == "Go on"
        assert window.run("return byId('speech').hidden")
        window.run("byId('make').click()")
        window.wait_for("state.making.phase === 'done'")
        window.wait_for("!byId('speech').hidden && !byId('listen').hidden")
        window.type("#text", "Good morning." + ENTER)
        window.wait_for("player.currentTime > 0.2")
        sizes = """Promise.all(['listen', 'downloads/voice', 'downloads/piper', 'downloads/recordings'].map(
            async (path) => (await (await fetch('api/' + path)).arrayBuffer()).byteLength))"""
        assert min(window.run_async(sizes)) > 100_000
        window.run("window.open('api/listen', '_self')")
        window.wait_for("document.querySelectorAll('audio').length >= 2")
        window.wait_for("document.querySelector('audio').duration > 1")
    assert [path.name for path in folder.glob(".download-*")] == []
