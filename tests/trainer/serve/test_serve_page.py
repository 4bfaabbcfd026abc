"""The page in a real browser: sentences are typed, heard exactly, drawn, stopped, kept and compared, by keyboard."""

import time
from pathlib import Path

import pytest
from server_process import LONG, listening_server, settings_of
from web_browser import CONTROL, ENTER, ESCAPE, TAB, browser

from xtts.trainer.serve.served_voice import ServedVoice

pytestmark = pytest.mark.long
SAID = "document.getElementById('status').textContent"
HEARD = "player.heard > 0.05"
SHOWN = "!document.getElementById('shown').hidden"
STOP_IS_OFF = "document.getElementById('stop').disabled"
SOUND, BREAK_OFF = (Path(__file__).with_name(name).read_text() for name in ("sound_of_link.js", "break_off.js"))


@pytest.fixture(scope="module")
def page(listening, tmp_path_factory):
    with browser(tmp_path_factory.mktemp("profile")) as window:
        window.open(f"{listening.base_url}/")
        window.wait_for(f"{SAID} === 'Ready.'")
        yield window


def write(page, words):
    page.run("document.getElementById('text').value = ''")
    page.type("#text", words)


def speak(page, words):
    """Ask for it, and wait for the first sound."""
    write(page, words)
    page.press(CONTROL, ENTER)
    page.wait_for(HEARD)


def sound_of(page, link="document.getElementById('download')"):
    """What a link downloads: bytes, seconds, the loudest sample."""
    sound = page.run_async(SOUND.replace("LINK", link))
    assert isinstance(sound, dict), sound
    return sound | {"bytes": bytes(sound["bytes"])}


def test_a_typed_sentence_is_heard_and_kept(page, spoken_by_command):
    assert page.run("return document.activeElement.id") == "text"
    write(page, "hello there")
    page.press(CONTROL, ENTER)
    page.wait_for(f"{SAID}.includes('s of speech')")
    sound = sound_of(page)
    assert sound["bytes"] == spoken_by_command("hello there", speed=1)
    assert sound["seconds"] > 0.1
    assert sound["loudest"] > 0.001
    assert page.run("return document.getElementById('download').download") == "hello-there.wav"


def test_the_keyboard_reaches_everything_and_stops(page):
    page.run("document.getElementById('text').focus()")
    reached = []
    for _ in range(3):
        page.press(TAB)
        reached.append(page.run("return document.activeElement.id"))
    assert reached[0] == "speak"
    assert {"quality", "speed"} & set(reached)
    unnamed = "(field) => !field.labels.length && !field.ariaLabel"
    fields = "[...document.querySelectorAll('input:not([hidden]), select, textarea')]"
    assert page.run(f"return {fields}.filter({unnamed}).length") == 0
    write(page, LONG * 4)
    page.press(CONTROL, ENTER)
    page.wait_for(f"{SAID}.endsWith('…')")
    page.press(ESCAPE)
    page.wait_for(f"{SAID} === 'Stopped.'")


@pytest.mark.parametrize("words", ["first words", "other words", LONG])
def test_stop_silences_every_utterance_while_it_is_heard(page, words):
    speak(page, words)
    page.run("player.play(0)")  # a short one may be over
    page.wait_for(f"!{STOP_IS_OFF}")
    page.run("stopButton.click()")
    page.wait_for(STOP_IS_OFF)
    assert page.run("return [running, player.playing, player.heard, player.sources.length]") == [None, False, 0, 0]


def test_takes_are_played_and_downloaded_again(page, spoken_by_command):
    before = page.run("return takes.length")
    for number, speed in enumerate((1, 2), start=1):
        page.run(f"speed.value = {speed}")
        speak(page, "to compare")
        page.wait_for(f"takes.length === {before + number}")
    page.run("speed.value = 1")
    names, whole = [], []
    for number in (1, 0):
        link = f"document.querySelectorAll('#take-list a')[{number}]"
        names.append(page.run(f"return {link}.download"))
        whole.append(sound_of(page, link)["bytes"])
    assert names == ["to-compare.wav", "to-compare-2.wav"]
    assert whole == [spoken_by_command("to compare", speed=speed) for speed in (1, 2)]
    page.run("document.querySelectorAll('#take-list button')[1].click()")
    page.wait_for(HEARD)
    assert page.run("return [shown === takes[1], document.querySelector('[aria-current=true] a').download]") == [
        True, "to-compare.wav",
    ]


def test_a_download_has_the_format_that_is_chosen(page):
    assert page.run("return [...format.options].map((one) => one.value)") == ["mp3", "opus", "wav", "flac"]
    assert page.run("return format.value") == "wav"
    page.run("takes = []")
    speak(page, "to keep")
    page.wait_for("takes.length === 1")
    page.run("HTMLAnchorElement.prototype.click = function () { window.saved = this; }; format.value = 'flac'")
    page.run("download.dispatchEvent(new Event('click', {cancelable: true}))")
    assert page.wait_for("window.saved?.download") == "to-keep.flac"
    page.run("format.value = 'wav'")
    sound = sound_of(page, "saved")
    assert sound["bytes"].startswith(b"fLaC")
    assert sound["seconds"] == pytest.approx(sound_of(page)["seconds"])


def test_what_has_come_is_kept_when_the_connection_breaks(page):
    page.run(BREAK_OFF + "takes = []")
    speak(page, LONG * 4)
    page.wait_for("takes.length === 1")
    assert page.run(f"return {SAID}").startswith("The speech broke off after ")
    assert sound_of(page)["seconds"] == pytest.approx(page.run("return takes[0].seconds"))
    page.press(ESCAPE)


def test_a_text_above_the_limit_cannot_be_spoken(page):
    before = page.run("text.value = 'a'.repeat(2001); text.dispatchEvent(new Event('input')); return takes.length")
    page.press(CONTROL, ENTER)
    assert page.run("return [speakButton.disabled, running, takes.length]") == [True, None, before]
    assert page.run("return document.getElementById('letters').textContent") == "2001 of 2000"
    write(page, "short")
    assert not page.run("return speakButton.disabled")


def test_a_refusal_is_said_and_nothing_of_the_former_clip_stays(page):
    speak(page, "a former clip")
    assert page.run(f"return {SHOWN}")
    write(page, "日本")
    page.type("#text", CONTROL + ENTER)
    page.wait_for(f"{SAID}.includes('nothing to speak')")
    assert page.run("return document.getElementById('status').className") == "wrong"
    assert page.run(f"return [{SHOWN}, shown, player.playing]") == [False, None, False]
    page.type("#text", "a")
    assert page.run(f"return [{SAID}, document.getElementById('status').className]") == ["", ""]


def test_nothing_comes_from_elsewhere_and_the_console_is_empty(page, listening):
    own = f"{listening.base_url}/"
    loaded = page.run("return performance.getEntriesByType('resource').map((entry) => entry.name)")
    assert any(name.endswith("page.js") for name in loaded)
    assert all(name.startswith((own, f"blob:{own}")) for name in loaded)
    wanted = "/v1/audio/speech - Failed to load resource: the server responded with a status of 400"
    assert [line for line in page.complaints() if wanted not in line] == []


def test_a_voice_is_uploaded_and_another_recorded(imitator, recordings, tmp_path):
    low = (recordings / "low.wav",)
    settings = settings_of(speaker_wav=low)
    with listening_server(ServedVoice(imitator[1].source, settings, print)) as client, browser(tmp_path) as page:
        page.open(f"{client.base_url}/")
        page.wait_for(f"{SAID} === 'Ready.'")
        page.type("#recording", str(recordings / "high.wav"))
        page.wait_for(f"{SAID}.endsWith('voice of high.')")
        page.type("#recording", str(recordings / "both.wav"))
        page.wait_for(f"{SAID}.includes('voice of both. 2') && {SAID}.includes('somebody else?')")
        page.run("recordButton.click()")
        page.wait_for("recorder?.state === 'recording'")
        time.sleep(4)  # two seconds of it have to be a voice
        page.run("recordButton.click()")
        page.wait_for(f"{SAID}.endsWith('voice of My voice.')")
        assert page.run("return [...voice.options].map((one) => one.text)") == ["low", "high", "both", "My voice"]
        sounds = []
        for name in ("low", "high", "My voice"):
            page.run("voice.value = arguments[0]; takes = []", name)
            speak(page, "one text")
            page.wait_for("takes.length === 1")
            sounds.append(sound_of(page)["bytes"])
    assert len(set(sounds)) == 3
