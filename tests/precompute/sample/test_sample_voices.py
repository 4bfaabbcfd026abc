"""A sample corpus in another language, in another voice, with a speaker's name."""

import json

import pytest
import soundfile

from xtts.precompute.corpus.listing import read_corpus
from xtts.precompute.sample.espeak import check_voice, speak
from xtts.precompute.sample.sample_corpus import make_sample_corpus
from xtts.shared.errors import LockstepError

pytest.importorskip("espeakng_loader")


def make(out, **options):
    return make_sample_corpus(out, **{"clips": 2, "seed": 0, "max_seconds": 2.0, "workers": 1, **options})


def recorded(out):
    return json.loads((out / "sample-corpus.json").read_bytes())


def test_language_and_speaker_are_recorded_and_written(tmp_path):
    make(tmp_path, language="fa", speaker="Mina")
    arguments = recorded(tmp_path)
    assert (arguments["voice"], arguments["language"], arguments["speaker"]) == ("fa", "fa", "Mina")
    clips = read_corpus(tmp_path).clips
    assert [clip.speaker for clip in clips] == ["Mina", "Mina"]
    samples, _ = soundfile.read(tmp_path / "wavs/demo-00001.wav", dtype="int16")
    assert (samples == speak(clips[0].text, "fa")).all()
    assert make(tmp_path, language="fa", speaker="Mina").spoken == 0
    assert make(tmp_path, clips=3, language="fa", speaker="Mina").spoken == 1
    with pytest.raises(LockstepError, match=r"a corpus with .*language=fa, speaker=Mina.*language=None, speaker=None"):
        make(tmp_path, clips=3)


def test_an_english_corpus_records_what_it_always_did(tmp_path):
    make(tmp_path)
    assert recorded(tmp_path) == {
        "generator": 1, "voice": "en-us", "words_per_minute": 140, "pitch": 50,
        "seed": 0, "max_seconds": 2.0, "clips": 2,
    }  # fmt: skip


def test_another_voice_says_the_same(tmp_path):
    make(tmp_path / "usual", language="de")
    make(tmp_path / "other", language="de", voice="de+f3")
    assert recorded(tmp_path / "other")["voice"] == "de+f3"
    usual, other = (tmp_path / name for name in ("usual", "other"))
    assert (usual / "metadata.csv").read_bytes() == (other / "metadata.csv").read_bytes()
    assert (usual / "wavs/demo-00001.wav").read_bytes() != (other / "wavs/demo-00001.wav").read_bytes()


def test_given_transcripts_are_spoken_in_another_language(tmp_path):
    (tmp_path / "given.csv").write_text("a|Guten Tag.\n", encoding="utf-8")
    make(tmp_path / "out", metadata=tmp_path / "given.csv", max_seconds=None, language="de", speaker="Anna")
    assert (tmp_path / "out/metadata.csv").read_text(encoding="utf-8") == "a|Guten Tag.|Guten Tag.|Anna\n"
    samples, _ = soundfile.read(tmp_path / "out/wavs/a.wav", dtype="int16")
    assert (samples == speak("Guten Tag.", "de")).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"language": "xx"}, "language: 'xx', expected one of en, cmn, de, es, fa, hi, ru"),
        ({"voice": "xx"}, "no voice 'xx', expected an espeak-ng voice such as"),
        ({"voice": "de+f99"}, "voice: no variant 'f99', expected one such as 'f3' or 'm2', as in"),
        ({"speaker": "a|b"}, r"speaker: 'a\|b' holds a column mark, expected a name without \|"),
        ({"speaker": " "}, "speaker: speaker '' is empty, expected a plain name"),
    ],
)
def test_unusable_choices_leave_nothing_behind(tmp_path, options, message):
    with pytest.raises(LockstepError, match=message):
        make(tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_voices_that_there_are_pass():
    for voice in ("de", "en-us", "fa+m3"):
        check_voice(voice)
