"""`sample-corpus --voices`: distinct voices, always the same ones, some held out in a corpus of their own."""

import numpy as np
import pytest
import soundfile
from builds import read_corpus
from click.testing import CliRunner

from xtts.precompute.cli import main
from xtts.precompute.sample.voices import SampleVoice, sample_voices

pytest.importorskip("espeakng_loader")


def run(*arguments):
    return CliRunner().invoke(main, ["sample-corpus", *map(str, arguments), "--max-seconds", "2", "--workers", "0"])


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


def test_other_voices_are_refused(tmp_path):
    for voices, code in ((3, 0), (3, 0), (4, 2)):
        done = run(tmp_path / "out", "--voices", voices, "--held-out-voices", 1, "--clips", 3)
        assert done.exit_code == code, done.output
    assert "out-held-out: a corpus with clips=2, expected clips=1" in done.output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--held-out-voices", 2], "held-out-voices: 2 with 1 in all, expected fewer than --voices N"),
        (["--voices", 3, "--held-out-voices", 3], "held-out-voices: 3 with 3 in all, expected fewer than --voices N"),
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
