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
    )
    assert done.returncode == 0, done.stderr
    mel = load_voice(VOICE).speak(SENTENCES["en"]).mel
    made, shipped = (make_vocoder(f"onnx:{folder / 'vocoder.onnx'}", profile, print)(mel) for folder in (out, VOICE))
    np.testing.assert_allclose(made, shipped, atol=1e-5)


TEXTS = (
    "Guten Morgen", "Das ist ein Test", "Er ging nach Hause, ohne etwas zu sagen", "Ja", "Nein!", "Wohin?", "Eis",
    "Österreich und Ungarn", "Ich weiß nicht, ob sie kommt", "Äpfel und Birnen", "Sag es noch einmal", "Elf Uhr",
)


@pytest.mark.parametrize("speed", [1.0, 2.0])
def test_every_text_begins_and_ends_in_silence_with_or_without_a_mark(speed):
    """Of texts without a full stop three in four were cut off where they still sounded."""
    voice = load_voice(VOICE, language="de", speed=speed)
    for text in TEXTS:
        samples = voice.speak(text).samples
        level = np.sqrt(np.mean(np.square(samples)))
        for end in (samples[:220], samples[-220:]):
            assert np.sqrt(np.mean(np.square(end))) < 0.01 * level, f"{text}: louder than -40 dB in 10 ms at an end"


def test_the_folder_is_small_and_says_what_it_is_and_how_many_evaluations_its_graph_makes():
    sizes = [sum(path.stat().st_size for path in folder.iterdir()) for folder in (VOICE, VOICE.parent / "vocoder")]
    assert sizes[0] <= 12 * 2**20
    assert sum(sizes) <= 16 * 2**20
    card = (VOICE / "README.md").read_text(encoding="utf-8")
    assert "license: cc0-1.0" in card
    assert "xtts-train" in card
    described = onnx.load(VOICE / "model.onnx").metadata_props
    (evaluations,) = (entry.value for entry in described if entry.key == "num_ode_steps")
    assert int(evaluations) == SynthesisOptions().nfe
