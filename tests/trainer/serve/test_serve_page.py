"""The page in a real browser: a sentence is typed, heard to the bit, drawn, kept and stopped, by keyboard."""

import pytest
from server_process import LONG
from web_browser import CONTROL, ENTER, ESCAPE, TAB, browser

pytestmark = pytest.mark.long
SAID = "document.getElementById('status').textContent"
KEPT = "!document.getElementById('download').hidden"
SOUND = """(async () => {
  const bytes = await (await fetch(document.getElementById('audio').src)).arrayBuffer();
  const copy = Array.from(new Uint8Array(bytes));
  const sound = await new AudioContext({sampleRate: 22050}).decodeAudioData(bytes);
  const loudest = sound.getChannelData(0).reduce((most, sample) => Math.max(most, Math.abs(sample)), 0);
  return {bytes: copy, seconds: sound.duration, loudest};
})()"""
COLOURS = """
const canvas = document.getElementById('mel');
const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
return new Set(new Uint32Array(data.buffer)).size;
"""


@pytest.fixture(scope="module")
def page(listening, tmp_path_factory):
    with browser(tmp_path_factory.mktemp("profile")) as window:
        window.open(f"{listening.base_url}/")
        window.wait_for(f"{SAID} === 'Ready.'")
        yield window


def write(page, words):
    page.run("document.getElementById('text').value = ''")
    page.type("#text", words)


def test_a_typed_sentence_is_heard_drawn_and_kept(page, spoken_by_command):
    assert page.run("return document.activeElement.id") == "text"
    write(page, "hello there")
    page.press(CONTROL, ENTER)
    page.wait_for(f"{SAID}.includes('s of speech')")
    sound = page.run_async(SOUND)
    assert isinstance(sound, dict), sound
    assert bytes(sound["bytes"]) == spoken_by_command("hello there", speed=1)[0]
    assert sound["seconds"] > 0.1
    assert sound["loudest"] > 0.001
    page.wait_for("document.getElementById('mel').ariaLabel.startsWith('Mel spectrogram of')")
    assert page.run(COLOURS) > 20
    assert page.run("return document.getElementById('download').download") == "speech.wav"
    assert page.run(f"return {KEPT}")


def test_the_keyboard_reaches_everything_and_stops(page):
    page.run("document.getElementById('text').focus()")
    reached = []
    for _ in range(3):
        page.press(TAB)
        reached.append(page.run("return document.activeElement.id"))
    assert reached[0] == "speak"
    assert {"steps", "speed"} & set(reached)
    labels = page.run(
        "return [...document.querySelectorAll('input, select, textarea')].map((field) => field.labels.length)"
    )
    assert labels == [1] * 6
    write(page, LONG * 4)
    page.press(CONTROL, ENTER)
    page.wait_for(f"{SAID}.endsWith('…')")
    page.press(ESCAPE)
    page.wait_for(f"{SAID} === 'Stopped.'")


def test_a_refusal_is_said(page):
    write(page, "日本")
    page.type("#text", CONTROL + ENTER)
    page.wait_for(f"{SAID}.includes('nothing to speak')")
    assert page.run("return document.getElementById('status').className") == "wrong"


def test_text_from_right_to_left_and_a_narrow_window(page):
    write(page, "سلام")
    assert page.run("return getComputedStyle(document.getElementById('text')).direction") == "rtl"
    page.chrome("Emulation.setDeviceMetricsOverride", width=360, height=740, deviceScaleFactor=1, mobile=True)
    assert page.run("return document.documentElement.scrollWidth") <= 360
    page.chrome("Emulation.clearDeviceMetricsOverride")


def test_nothing_comes_from_elsewhere_and_the_console_is_empty(page, listening):
    own = f"{listening.base_url}/"
    loaded = page.run("return performance.getEntriesByType('resource').map((entry) => entry.name)")
    assert any(name.endswith("page.js") for name in loaded)
    assert all(name.startswith((own, f"blob:{own}")) for name in loaded)
    wanted = "/v1/audio/speech - Failed to load resource: the server responded with a status of 400"
    assert [line for line in page.complaints() if wanted not in line] == []
