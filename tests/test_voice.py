"""The voice of this repository speaks, as a reader of the README would call it."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
import soundfile

from xtts.shared.audio.mel import log_mel
from xtts.shared.audio.mel_profiles import mel_profile
from xtts.shared.audio.pitch import track_pitch
from xtts.trainer.export.model_card import list_recordings
from xtts.trainer.speech.loaded_voice import load_voice
from xtts.trainer.speech.synthesis_options import SynthesisOptions
from xtts.trainer.speech.vocoder import make_vocoder

VOICE = Path(__file__).parents[1] / "voices" / "base"
MOST_BYTES = 12 * 2**20
SENTENCES = {"en": "Good morning, the sun is shining today.", "de": "Guten Morgen, heute scheint die Sonne."}


@pytest.mark.parametrize("language", ["en", "de"])
def test_a_sentence_has_the_length_and_the_pitch_of_a_woman_who_says_it(language, tmp_path):
    wav = tmp_path / "out.wav"
    text = SENTENCES[language]
    line = [Path(sys.executable).with_name("xtts-synth"), "--ckpt", VOICE, "--language", language, text, "-o", wav]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    spoken, rate = soundfile.read(wav)
    assert rate == 22_050
    profile = mel_profile("hifigan")
    assert 1.5 < len(spoken) / profile.sample_rate < 4.0
    frames = len(log_mel(spoken.astype(np.float32), profile))
    voiced = (track := track_pitch(spoken.astype(np.float32), profile, frames))[track > 0]
    assert 0.3 < len(voiced) / frames < 0.9
    assert 130 < np.median(voiced) < 260


def test_the_voice_speaks_with_its_own_vocoder_unless_another_is_named():
    own, named, other = (
        load_voice(VOICE, vocoder=vocoder).speak(SENTENCES["en"]).samples
        for vocoder in (None, f"onnx:{VOICE / 'vocoder.onnx'}", "griffinlim")
    )
    np.testing.assert_array_equal(own, named)
    assert own.shape == other.shape
    assert np.abs(own - other).max() > 0.05


def test_the_card_lists_the_recordings_of_voice_and_vocoder():
    facts, vocoder = (json.loads((VOICE.parent / name / "facts.json").read_text()) for name in ("base", "vocoder"))
    assert facts["vocoder_sources"] == vocoder["sources"]
    assert list_recordings(facts) in (VOICE / "README.md").read_text()


@pytest.mark.long
def test_the_weights_to_train_a_vocoder_from_are_those_of_the_voice(tmp_path):
    out, profile = tmp_path / "out", mel_profile("hifigan")
    done = subprocess.run(
        [Path(sys.executable).with_name("xtts-synth"), "export", "--ckpt", VOICE.parent / "vocoder", out],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    mel = load_voice(VOICE).speak(SENTENCES["en"]).mel
    made, shipped = (make_vocoder(f"onnx:{folder / 'vocoder.onnx'}", profile, print)(mel) for folder in (out, VOICE))
    np.testing.assert_allclose(made, shipped, atol=1e-5)


TEXTS = (
    "Guten Morgen", "Das ist ein Test", "Am Abend", "Er ging nach Hause, ohne etwas zu sagen", "Ja", "Nein!", "Wohin?",
    "Österreich und Ungarn", "Ich weiß nicht, ob sie kommt", "Alle Kinder spielten im Garten", "Und dann", "Eis",
    "Die Tür ist offen", "Unter der Brücke", "Es regnet seit drei Tagen", "Auf Wiedersehen", "Um halb acht",
    "Eine alte Frau wohnte dort", "Ihr Hund bellt", "Oben auf dem Berg", "Ein Glas Wasser, bitte", "Äpfel und Birnen",
    "Morgen um diese Zeit", "Wir fahren mit dem Zug", "Sie lachte laut", "Im Sommer", "Übermorgen", "Kein Wort",
    "An der Ecke steht ein Auto", "Jetzt", "Er aß", "Das Haus am See", "Niemand hat ihn gesehen", "So viel Geld",
    "Vor langer Zeit", "Elf Uhr", "Der Himmel ist blau", "Sag es noch einmal", "Ohne Licht", "Aus Stein gebaut",
)  # fmt: skip


@pytest.mark.parametrize("speed", [1.0, 2.0])
def test_every_text_begins_and_ends_in_silence_with_or_without_a_mark(speed):
    """Of texts without a full stop three in four were cut off where they still sounded."""
    voice = load_voice(VOICE, language="de", speed=speed)
    for text in TEXTS:
        samples = voice.speak(text).samples
        level = np.sqrt(np.mean(np.square(samples)))
        for end in (samples[:220], samples[-220:]):
            assert np.sqrt(np.mean(np.square(end))) < 0.01 * level, f"{text}: louder than -40 dB in 10 ms at an end"


def test_the_folder_is_small_and_says_what_it_is():
    sizes = [sum(path.stat().st_size for path in folder.iterdir()) for folder in (VOICE, VOICE.parent / "vocoder")]
    assert sizes[0] <= MOST_BYTES
    assert sum(sizes) <= 16 * 2**20
    card = (VOICE / "README.md").read_text(encoding="utf-8")
    assert "license: cc0-1.0" in card
    assert "xtts-train" in card


def test_its_graph_makes_as_many_evaluations_as_the_commands():
    described = onnx.load(VOICE / "model.onnx").metadata_props
    (evaluations,) = (entry.value for entry in described if entry.key == "num_ode_steps")
    assert int(evaluations) == SynthesisOptions().nfe
