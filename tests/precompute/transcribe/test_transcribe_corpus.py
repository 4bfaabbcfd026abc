"""Recordings without texts to a corpus: what is written, continued, kept and refused; Whisper itself if installed."""

import sys
from difflib import SequenceMatcher
from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile
import soxr
from builds import Listener, command, read_corpus, tree, write_files
from tables import cases

from xtts.precompute.transcribe.recordings import decode_recording
from xtts.precompute.transcribe.transcribe_corpus import transcribe_corpus
from xtts.shared import errors
from xtts.shared.audio.decode import read_recording
from xtts.shared.audio.recogniser import RATE, Recogniser
from xtts.shared.errors import LockstepError


class Fake(Recogniser):
    """Hears noise as speech, and counts clips: those of which `doubted` holds the number are doubtful."""

    def __init__(self, stop_after=1000, doubted=(), language="en"):
        self.heard, self.stop_after, self.doubted, self.spoken = 0, stop_after, doubted, language

    def speech(self, samples):
        loud = np.abs(samples[: len(samples) // 160 * 160].reshape(-1, 160)).max(axis=1) > 0.2
        edges = np.flatnonzero(np.diff(np.pad(loud, 1).astype(int))) * 160 / RATE
        return list(zip(edges[::2], edges[1::2], strict=True))

    def language(self, samples):
        return self.spoken

    def words(self, samples, language):
        return [(start, start + 0.9) for start in range(len(samples) // RATE)]

    def transcribe(self, samples, language):
        if self.heard == self.stop_after:
            raise KeyboardInterrupt
        self.heard += 1
        return f"{len(samples) / RATE:.1f} seconds, said in {language}.", 0.1 if self.heard in self.doubted else 0.9


def record(path, *seconds, rate=22_050, seed=0):
    """A recording of noise of these lengths, after a second of silence each."""
    random = np.random.default_rng(seed)
    parts = [np.pad(random.uniform(-0.5, 0.5, round(length * rate)), (rate, 0)) for length in seconds]
    soundfile.write(path, np.concatenate(parts), rate)
    return path


def transcribe(out, *audio, recogniser=None, said=None, **options):
    recogniser = recogniser or Fake()
    return transcribe_corpus(out, audio, lambda *_: recogniser, progress=said or Listener(), **options)


def metadata(out):
    return (out / "metadata.csv").read_text().splitlines()


def test_the_corpus_is_one_that_build_reads(tmp_path):
    recording, said = record(tmp_path / "my talk.flac", 3, 4, rate=44_100), Listener()
    before = tree(tmp_path)
    summary = transcribe(out := tmp_path / "out", recording, language="en", said=said)
    lines = ["my_talk-0001|3.2 seconds, said in en.", "my_talk-0002|4.1 seconds, said in en."]
    assert metadata(out) == lines
    assert [f"{clip.id}|{clip.text}" for clip in read_corpus(out).clips] == lines
    samples, rate = soundfile.read(wav := out / "wavs" / "my_talk-0002.wav", dtype="int16")
    assert (rate, soundfile.info(wav).subtype) == (44_100, "PCM_16")
    np.testing.assert_array_equal(samples, soundfile.read(recording, start=round(4.9 * rate), dtype="int16")[0])
    assert (out / "transcripts.csv").read_text().splitlines() == [
        "id,recording,start,end,confidence,mark,asr,language,text",
        f'my_talk-0001,{recording},0.900,4.100,0.900,,base,en,"3.2 seconds, said in en."',
        f'my_talk-0002,{recording},4.900,9.000,0.900,,base,en,"4.1 seconds, said in en."',
    ]
    assert (said.stages, said.lines) == ({"my_talk": 2}, [f"{recording}: 0.1 min, language en, Whisper base"])
    assert summary.splitlines() == [
        f"{out}: 2 clips (0.1 min) of 1 recording", "not in clips: 2 s without speech",
        f"next: xtts-voice {out} --language en",
    ]
    assert {name: data for name, data in tree(tmp_path).items() if not name.startswith("out/")} == before


@pytest.mark.parametrize("stop_after", [0, 7, 35, 45])
def test_a_stopped_run_is_continued_to_the_same_bytes(tmp_path, stop_after):
    recordings = record(tmp_path / "a.wav", *[2.1] * 41, rate=8_000), record(tmp_path / "b.wav", *[2.5] * 9, rate=8_000)
    transcribe(tmp_path / "whole", *recordings)
    out, resumed = tmp_path / "out", Fake()
    with pytest.raises(KeyboardInterrupt):
        transcribe(out, *recordings, recogniser=Fake(stop_after))
    transcribe(out, *recordings, recogniser=resumed)
    assert tree(out) == tree(tmp_path / "whole")
    assert stop_after - 20 < 50 - resumed.heard <= stop_after
    transcribe(out, *recordings, recogniser=Fake(stop_after=0))  # there is nothing to do


def test_what_a_person_has_corrected_stays(tmp_path):
    out, first = tmp_path / "out", record(tmp_path / "a.wav", 3, 4, 3)
    transcribe(out, first)
    (out / "metadata.csv").write_text("a-0003|Corrected, without a line feed.")  # and two removed
    summary = transcribe(out, first, record(tmp_path / "b.wav", 5, seed=1))
    assert metadata(out) == ["a-0003|Corrected, without a line feed.", "b-0001|5.1 seconds, said in en."]
    assert summary.startswith(f"{out}: 2 clips (0.1 min) of 2 recordings")
    (out / "transcripts.csv").unlink()  # all is transcribed again
    transcribe(out, first)
    assert metadata(out)[:2] == ["a-0003|Corrected, without a line feed.", "b-0001|5.1 seconds, said in en."]
    assert [line.partition("|")[0] for line in metadata(out)[2:]] == ["a-0001", "a-0002"]
    (out / "transcripts.csv").write_text("id;recording;start\n")  # by another program
    with pytest.raises(LockstepError, match=r"transcripts\.csv: columns .*; restore it, and correct texts in metadata"):
        transcribe(out, first)


def test_a_doubtful_clip_is_not_trained_on_until_a_person_lists_it(tmp_path):
    out, recording = tmp_path / "out", record(tmp_path / "a.wav", 3, 4, 3)
    summary = transcribe(out, recording, recogniser=Fake(doubted=[2]))
    assert [line.partition("|")[0] for line in metadata(out)] == ["a-0001", "a-0003"]
    assert (out / "wavs" / "a-0002.wav").exists()
    assert "doubtful, not in metadata.csv: 1 clip (a-0002)\n" in summary
    assert ',0.100,doubtful,base,en,"4.2 seconds' in (out / "transcripts.csv").read_text()
    with (out / "metadata.csv").open("a") as file:
        file.write("a-0002|Now with its text.\n")
    assert "not in metadata.csv" not in transcribe(out, recording)


def test_speech_without_a_pause_is_cut_between_words(tmp_path):
    transcribe(tmp_path / "out", record(tmp_path / "a.wav", 3.5, 20))
    assert [line.split(",")[2:4] for line in (tmp_path / "out" / "transcripts.csv").read_text().splitlines()[1:]] == [
        ["0.900", "4.600"], ["5.400", "15.450"], ["15.450", "25.500"],
    ]


def test_a_long_recording_is_cut_as_a_short_one(tmp_path):
    """Speech is detected in parts of five minutes; one ends within a clip."""
    transcribe(tmp_path / "out", record(tmp_path / "a.wav", *[5.3] * 57, rate=4_000))
    rows = [line.split(",") for line in (tmp_path / "out" / "transcripts.csv").read_text().splitlines()[1:]]
    assert [float(row[2]) for row in rows] == pytest.approx([0.9 + 6.3 * clip for clip in range(57)], abs=0.02)


def test_channels_are_chosen_for_the_whole_of_a_long_recording(tmp_path):
    left, right = 0.3 * np.random.default_rng(0).standard_normal((2, 150 * 1_000))
    right[: 70 * 1_000] = right[71 * 1_000 :] = 0  # of three parts only the second has sound there
    for name, other in (("a", right), ("b", -left)):
        soundfile.write(tmp_path / f"{name}.wav", np.stack([left, other], axis=1), 1_000)
        samples, rate, _ = decode_recording(tmp_path / f"{name}.wav")
        assert rate == 1_000
        np.testing.assert_array_equal(samples, np.rint(read_recording(tmp_path / f"{name}.wav").at(rate) * 32768))
    np.testing.assert_allclose(samples, np.rint(left.clip(-1, 1) * 32768), atol=1)


def test_silence_gives_no_clip(tmp_path):
    soundfile.write(tmp_path / "silence.wav", np.zeros(20 * 8_000), 8_000)
    summary = transcribe(tmp_path / "out", tmp_path / "silence.wav", record(tmp_path / "short.wav", 1.5))
    assert summary.splitlines() == [
        f"{tmp_path / 'out'}: 0 clips (0.0 min) of 2 recordings",
        "not in clips: 21 s without speech, 2 s of speech in pieces too short or too long",
    ]


def test_languages_are_detected_and_not_mixed(tmp_path):
    recordings, said = [record(tmp_path / f"{name}.wav", 3, seed=seed) for seed, name in enumerate("ab")], Listener()
    transcribe(tmp_path / "out", recordings[0], said=said)
    assert said.lines == [f"{recordings[0]}: 0.1 min, language en (detected), Whisper base"]
    summary = transcribe(tmp_path / "out", *recordings, recogniser=Fake(language="de"))
    assert summary.endswith("languages: de, en; give --language, and each language a corpus of its own")


def test_recordings_are_found_at_any_depth_once_and_not_in_the_corpus(tmp_path):
    (tmp_path / "all" / "deep").mkdir(parents=True)
    (tmp_path / "all" / "deep" / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").mkdir()
    for seed, name in enumerate(["all/a.wav", "all/deep/A.flac", "elsewhere/a.mp3"]):
        record(tmp_path / name, 3, seed=seed)
    write_files(tmp_path, {"all/notes.txt": "no sound", "all/copy.wav": (tmp_path / "all" / "a.wav").read_bytes()})
    for _ in range(2):
        transcribe(tmp_path / "all" / "out", tmp_path / "all")
    names = [line.partition("|")[0] for line in metadata(tmp_path / "all" / "out")]
    assert names == ["copy-0001", "A-0001", "a-2-0001"]  # some file systems take A and a for one


def test_a_bad_recording_and_other_files_are_named_and_passed_over(tmp_path):
    (tmp_path / "all").mkdir()
    for seed, name in enumerate(["a.wav", "b.flac", "d.OGA"]):
        record(tmp_path / "x.ogg" if "OGA" in name else tmp_path / "all" / name, 3, seed=seed)
    (tmp_path / "x.ogg").rename(tmp_path / "all" / "d.OGA")
    data = (tmp_path / "all" / "b.flac").read_bytes()
    others = {"c.wav": "", "e.3gp": "no sound", "f.zip": "", "g.txt": "", "h.m4a": errors._POINTER}
    write_files(tmp_path / "all", {"b.flac": data[: len(data) // 2], **others})
    said = Listener()
    transcribe(tmp_path / "out", tmp_path / "all", said=said)
    assert [line.partition("|")[0] for line in metadata(tmp_path / "out")] == ["a-0001", "d-0001"]
    assert said.lines[0] == f"{tmp_path}/all: files that are no recordings: 1 .zip, 1 .txt; unpack f.zip and the like"
    by_ffmpeg = "unreadable" if find_spec("av") else "faster-whisper,"  # which is not installed
    assert sorted(" ".join(line.split()[:4]) for line in said.lines[-4:]) == [
        f"passed over: {tmp_path}/all/{name}"
        for name in ("b.flac: unreadable", "c.wav: empty", f"e.3gp: {by_ffmpeg}", "h.m4a: a")
    ]
    assert "h.m4a: a pointer of Git LFS" in "".join(said.lines)
    with pytest.raises(LockstepError, match=r"b\.flac: unreadable audio: "):
        transcribe(tmp_path / "out", tmp_path / "all" / "b.flac")

    def load(asr, language):
        raise LockstepError("--asr", found=asr)

    with pytest.raises(LockstepError, match="--asr: base"):  # no fault of a recording
        transcribe_corpus(
            tmp_path / "out", [tmp_path / "all", record(tmp_path / "i.wav", 3, seed=5)], load, progress=said
        )


def test_a_changed_recording_takes_the_place_of_its_earlier_clips(tmp_path):
    for folder in "xy":
        (tmp_path / folder).mkdir()
        record(tmp_path / folder / "a.wav", *([3, 4, 5, 6, 7, 3, 8] if folder == "x" else [3]), seed=ord(folder))
    out, said = tmp_path / "out", Listener()
    transcribe(out, tmp_path / "x", tmp_path / "y", recogniser=Fake(doubted=[7]))
    texts = {line.partition("|")[0]: line.partition("|")[2] for line in metadata(out)}
    assert sorted(texts) == ["a-0001", "a-0002", "a-0003", "a-0004", "a-0005", "a-0006", "a-2-0001"]
    y, same = f"a-2-0001|{texts['a-2-0001']}", [f"{name}|{texts[name]}" for name in ("a-0001", "a-0005")]
    corrected = ["a-0002|Four!", "a-0004|Six!", "a-0006|Three!", "a-0007|Eight!"]  # and a-0003 removed
    (out / "metadata.csv").write_text("\n".join([*same, y, *corrected]))
    record(tmp_path / "x" / "a.wav", 4, 3, 5, 7, 8, seed=9)  # in another order, and without the six seconds
    for _ in range(2):  # the second time, nothing happens
        transcribe(out, tmp_path / "x", tmp_path / "y", said=said)
        assert metadata(out) == [
            y, "a-0004|Six!", "a-0006|Three!", "a-3-0001|Four!", f"a-3-0002|{texts['a-0001']}",
            "a-3-0004|7.2 seconds, said in en.", "a-3-0005|Eight!",
        ]
    assert said.lines[1:] == [
        f"{tmp_path}/x/a.wav: new clips take the place of the earlier a-0001 and so on",
        "  corrected lines that no new clip fits stay: a-0004, a-0006",
    ]
    assert (out / "transcripts.csv").read_text().count(",replaced,") == 5
    assert (out / "wavs" / "a-0001.wav").exists()
    transcribe(out, record(tmp_path / "a.wav", 9))
    assert metadata(out)[-1].startswith("a-4-0001|"), "the earlier wavs stay as they are"


def test_a_recording_that_was_renamed_is_no_earlier_version(tmp_path):
    out, path = tmp_path / "out", record(tmp_path / "a.wav", 3)
    transcribe(out, path)
    path.rename(tmp_path / "b.wav")
    record(path, 4, seed=1)
    for audio in ([path, tmp_path / "b.wav"], [path]):
        transcribe(out, *audio)
        assert [line.partition("|")[0] for line in metadata(out)] == ["a-0001", "a-2-0001"]


def test_another_model_or_language_transcribes_again_what_nobody_has_corrected(tmp_path):
    out, said, recording = tmp_path / "out", Listener(), record(tmp_path / "a.wav", 3, 4, 5, 6)
    transcribe(out, recording, recogniser=Fake(doubted=[3]), asr="base", language="en")
    (out / "metadata.csv").write_text("a-0001|3.2 seconds, said in en.\na-0002|Corrected.\n")  # and the last removed
    for options in ({}, {"language": "en"}, {"asr": "base"}):
        transcribe(out, recording, recogniser=Fake(stop_after=0), **options)
    with pytest.raises(KeyboardInterrupt):
        transcribe(out, recording, recogniser=Fake(stop_after=0), language="de")
    assert metadata(out) == ["a-0001|3.2 seconds, said in en.", "a-0002|Corrected."]
    transcribe(out, recording, language="de", said=said)
    again = ["a-0001|3.2 seconds, said in de.", "a-0002|Corrected.", "a-0003|5.2 seconds, said in de."]
    assert metadata(out) == again
    assert said.lines == [
        f"{recording}: 0.4 min, language de, Whisper base",
        f"{recording}: 2 clips that nobody has corrected transcribed again",
    ]
    transcribe(out, recording, recogniser=Fake(doubted=[1]), asr="small")
    assert metadata(out) == again[1:]
    transcribe(out, recording, record(tmp_path / "b.wav", 3, seed=1))
    assert [row.split(",")[6] for row in (out / "transcripts.csv").read_text().splitlines()[1:]] == [
        "small", "base", "small", "base", "small",
    ]


def test_one_channel_of_two_people_is_transcribed(tmp_path):
    left, right = (np.pad(0.4 * np.random.default_rng(i).standard_normal(3 * 8_000), (8_000, 0)) for i in range(2))
    call = np.stack([np.pad(left, (0, len(right))), np.pad(right, (len(left), 0))], axis=1)
    soundfile.write(tmp_path / "a.wav", call, 8_000)
    said, out = Listener(), tmp_path / "out"
    transcribe(out, tmp_path / "a.wav", said=said)
    assert said.lines[0].startswith(f"{tmp_path}/a.wav: mixed from channels that differ; if they are two people, take")
    assert len(metadata(out)) == 2
    for channel in (1, None):
        transcribe(out, tmp_path / "a.wav", said=said, channel=channel)
        assert [line.partition("|")[0] for line in metadata(out)] == ["a-2-0001"]
    assert said.lines.count(said.lines[0]) == 1


def test_mistakes_are_one_line(tmp_path, monkeypatch):
    talk = record(tmp_path / "talk.wav", 3)
    write_files(tmp_path, {"other/metadata.csv": "a|b\n", "notes.txt": "a", "bad/x.wav": "not a wav"})
    write_files(tmp_path, {"none/x.zip": "", "none/y.md": "", "a.m4a": "x"})
    before = tree(tmp_path)
    monkeypatch.setitem(sys.modules, "av", None)
    for audio, out, message in cases(__file__)["mistakes"]:
        done = command("transcribe", tmp_path / audio, "--out", tmp_path / out)
        assert (done.exit_code, done.stderr.count("\n")) == (2, 1), done.stderr
        assert done.stderr.startswith(f"error: {tmp_path}/{message}")
    assert tree(tmp_path) == before
    monkeypatch.setitem(sys.modules, "faster_whisper", None)
    done = command("transcribe", talk, "--out", tmp_path / "out")
    assert done.stderr == "error: transcribe: faster-whisper is not installed; pip install 'lockstep-tts[transcribe]'\n"


@pytest.fixture
def library(monkeypatch):
    """A stand-in for faster-whisper, whose model returns `texts` one after the other and records its arguments."""
    library = SimpleNamespace(asked=[], texts=[])

    def recognise(samples, **options):
        library.asked.append(options)
        return [SimpleNamespace(text=library.texts[len(library.asked) - 1], avg_logprob=-0.5)], None

    model = SimpleNamespace(transcribe=recognise, supported_languages=["en", "zh"])
    library.WhisperModel, library.vad = lambda *_, **__: model, None
    monkeypatch.setitem(sys.modules, "faster_whisper", library)
    return library


@pytest.mark.parametrize(("texts", "heard"), [
    ([" And so | on."], ("And so on.", np.exp(-0.5))), ([" And so on." * 40, " And so on."], ("And so on.", 0.0)),
])
def test_a_loop_is_transcribed_again_and_doubtful(library, texts, heard):
    library.texts = texts
    text, confidence = Recogniser("base", "cmn").transcribe(np.zeros(3 * RATE, np.float32), "cmn")
    assert (text, confidence) == (heard[0], pytest.approx(heard[1]))
    assert [options.get("no_repeat_ngram_size") for options in library.asked] == [None, 3][: len(texts)]
    assert all((options["temperature"], options["language"]) == (0.0, "zh") for options in library.asked)


def test_what_whisper_lacks_is_one_line(library):
    with pytest.raises(LockstepError, match="--language: 'xx', expected one of en, zh"):
        Recogniser("base", "xx")
    library.WhisperModel = lambda *_, **__: open("/nowhere/model.bin")
    with pytest.raises(LockstepError, match=r"--asr: big, which cannot be loaded .*expected a size of Whisper to down"):
        Recogniser("big", None)


@pytest.mark.long
def test_whisper_hears_what_was_read(tmp_path, real_clips, whisper_folder):
    read = (real_clips / "kathleen" / "metadata.csv").read_text().splitlines()
    names, texts = zip(*(line.split("|") for line in read), strict=True)
    clips = [soundfile.read(real_clips / "kathleen" / f"{name}.flac") for name in names]
    rate = clips[0][1]
    soundfile.write(tmp_path / "long.mp3", np.concatenate([np.pad(samples, (0, rate)) for samples, _ in clips]), rate)
    done = command("transcribe", tmp_path / "long.mp3", "--out", tmp_path / "out", "--asr", whisper_folder)
    assert done.exit_code == 0, done.stderr
    assert "language en (detected)" in done.stderr
    heard = [clip.text for clip in read_corpus(tmp_path / "out").clips]
    assert 3 <= len(heard) <= len(texts)
    assert all(max(SequenceMatcher(None, text, clip).ratio() for text in texts) > 0.8 for clip in heard)
    recogniser = Recogniser(str(whisper_folder), "en")
    words = recogniser.words(soxr.resample(clips[0][0], rate, RATE).astype(np.float32), "en")
    assert abs(len(words) - len(texts[0].split())) <= 1
