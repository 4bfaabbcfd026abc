"""`sample-corpus --voices`: distinct voices, always the same ones, some held out in a corpus of their own."""

import json

import numpy as np
import pytest
import soundfile
from click.testing import CliRunner

from xtts.precompute.cli import main
from xtts.precompute.corpus.listing import read_corpus
from xtts.precompute.sample.voices import SampleVoice, sample_voices

pytest.importorskip("espeakng_loader")


def run(*arguments):
    return CliRunner().invoke(main, ["sample-corpus", *map(str, arguments), "--max-seconds", "2", "--workers", "1"])


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_voice_n_is_the_same_in_any_number_of_voices_and_no_two_are_alike():
    voices = sample_voices(200)
    assert dict(list(voices.items())[:7]) == sample_voices(7)
    assert len(set(voices.values())) == 200
    assert len({voice.espeak for voice in voices.values()}) == 18
    assert {voice.espeak.partition("+")[0] for voice in sample_voices(20, "de").values()} == {"de"}


def test_all_that_a_voice_is_made_of_is_heard():
    others = ({"formants": 1.2}, {"pitch": 80}, {"pitch_range": 0}, {"words_per_minute": 180})
    assert len({SampleVoice(**other).speak("Nobody waited.").tobytes() for other in ({}, *others)}) == 5


def test_held_out_voices_are_in_a_corpus_of_their_own(tmp_path):
    done = run(tmp_path / "corpus", "--voices", 5, "--held-out-voices", 2, "--clips", 6)
    assert done.exit_code == 0, done.output
    trained, unheard = (read_corpus(tmp_path / name).clips for name in ("corpus", "corpus-held-out"))
    assert [clip.speaker for clip in trained] == ["voice-001", "voice-002", "voice-003"] * 2
    assert [clip.speaker for clip in unheard] == ["voice-004", "voice-005"] * 2
    assert not {clip.text for clip in trained} & {clip.text for clip in unheard}
    samples, _ = soundfile.read(tmp_path / "corpus-held-out/wavs/demo-00002.wav", dtype="int16")
    np.testing.assert_array_equal(samples, sample_voices(5)["voice-005"].speak(unheard[1].text))


def test_a_corpus_of_voices_is_repeatable_and_can_grow(tmp_path):
    for name, clips in (("once", 5), ("twice", 3), ("twice", 5)):
        done = run(tmp_path / name, "--voices", 3, "--held-out-voices", 1, "--clips", clips)
        assert done.exit_code == 0, done.output
    for suffix in ("", "-held-out"):
        assert contents(tmp_path / f"once{suffix}") == contents(tmp_path / f"twice{suffix}")
    assert json.loads((tmp_path / "once/sample-corpus.json").read_bytes())["voices"] == "voice-001 to voice-002"
    refused = run(tmp_path / "once", "--voices", 4, "--held-out-voices", 1, "--clips", 5)
    assert refused.exit_code == 2
    assert "a corpus with voices=voice-003 to voice-003" in refused.output
    assert "expected voices=voice-004 to voice-004" in refused.output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--held-out-voices", 2], "held-out-voices: no --voices, expected --voices N --held-out-voices M"),
        (["--voices", 3, "--held-out-voices", 3], "held-out-voices: 3, expected 0 to 2, below --voices"),
        (["--voices", 1000], "voices: 1000, expected 1 to 999"),
        (["--voices", 9, "--clips", 8], "clips: 8 for 9 voices, expected at least one for each"),
        (["--voices", 2, "--voice", "de"], "voices: 'de' as well, expected one voice or several"),
    ],
)
def test_what_does_not_go_together(tmp_path, options, message):
    done = run(tmp_path / "out", *options)
    assert done.exit_code == 2
    assert message in done.output
    assert not list(tmp_path.iterdir())
