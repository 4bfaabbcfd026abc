"""A corpus that asks: what changes of a recording, which statements are asked, and that they stay together."""

import json

import numpy as np
import pytest
import soundfile
from builds import build, command, noise, sound, write_tar
from cache_files import index_path

from xtts.precompute.questions.rising_end import ask
from xtts.shared.audio.mel_profiles import mel_profile
from xtts.shared.audio.pitch import final_pitch, track_pitch
from xtts.shared.cache.clip_index import read_index

PROFILE = mel_profile("hifigan")


def end_of(samples):
    return final_pitch(track_pitch(samples, PROFILE, PROFILE.frames(len(samples))), PROFILE.seconds(1))


def test_only_the_end_of_a_recording_is_raised(real_clips):
    recordings = [soundfile.read(path, dtype="float32")[0] for path in sorted(real_clips.glob("*/*.flac"))]
    asked = [(samples, ask(samples, PROFILE)) for samples in recordings]
    asked = [pair for pair in asked if pair[1] is not None]
    assert len(asked) > len(recordings) / 2
    for statement, question in asked:
        assert end_of(statement) + 2.0 < end_of(question) < 7.0
        assert end_of(question) >= 2.0
        spoken = np.flatnonzero(track_pitch(statement, PROFILE, PROFILE.frames(len(statement))))[-1] * 256
        early = spoken - round(0.5 * PROFILE.sample_rate)
        np.testing.assert_array_equal(question[:early], statement[:early])
        before, after = (np.sqrt(np.mean(samples[early:] ** 2)) for samples in (statement, question))
        assert 0.7 < after / before < 1.4


def test_a_voice_that_ends_in_a_blip_or_a_whisper_is_left(real_clips):
    samples = soundfile.read(real_clips / "kathleen" / "arctic_a0304_1592710071.flac", dtype="float32")[0]
    blip = np.sin(2.0 * np.pi * 200.0 * np.arange(1500) / 22_050).astype(np.float32) * 0.2
    silence = np.zeros(22_050, np.float32)
    assert ask(np.concatenate([samples, silence, blip, silence]), PROFILE) is None
    assert ask(noise(2.0).astype(np.float32), PROFILE) is None
    assert ask(silence, PROFILE) is None


@pytest.fixture
def corpus(real_clips, tmp_path):
    """Four readings of kathleen with different texts, and a noise."""
    folder = tmp_path / "corpus"
    folder.mkdir()
    paths = sorted((real_clips / "kathleen").glob("*.flac"))
    paths = [path for path in paths if ask(soundfile.read(path, dtype="float32")[0], PROFILE) is not None][:4]
    soundfile.write(folder / "noise.wav", noise(2.0), 22_050)
    texts = ["She said: “It is late.”", "Is it late?", "no mark", "\u0627\u0633\u062a.", "A noise."]
    (folder / "metadata.csv").write_text("file|text|speaker\n" + "".join(
        f"{path}|{text}|eve\n" for path, text in zip([*paths, folder / "noise.wav"], texts, strict=True)
    ))
    return folder


def test_statements_are_asked_and_nothing_else(corpus, tmp_path):
    out = tmp_path / "asking"
    done = command("questions", "--data", f"reader={corpus}", "--out", out, "--workers", 0)
    assert (done.exit_code, done.stdout) == (0, f"{out}: 5 clips, and 2 questions of them\n"), done.stderr
    lines = [json.loads(line) for line in (out / "manifest.jsonl").read_text().splitlines()]
    asked = [line for line in lines if line["id"].endswith("-asked")]
    assert [line["text"] for line in asked] == ["She said: “It is late?”", "\u0627\u0633\u062a\u061f"]
    assert {line["speaker"] for line in lines} == {"reader_eve"}
    again = command("questions", "--data", corpus, "--out", out)
    assert again.exit_code == 2
    assert "asking: exists already, expected a new folder; choose another, or delete it" in again.stderr


def test_clips_of_an_archive_are_written_out_and_questions_are_held_out_with_their_statements(real_clips, tmp_path):
    members = [("noise.wav", sound(1.0)), ("noise.txt", b"A noise."), ("no.wav", b"RIFF"), ("no.txt", b"Nothing.")]
    for number, path in enumerate(3 * sorted((real_clips / "kathleen").glob("*.flac"))):
        members += [(f"{number}.flac", path.read_bytes()), (f"{number}.txt", f"Some text {number}.".encode())]
    write_tar(tmp_path / "archive" / "clips.tar", *members)
    command("questions", "--data", tmp_path / "archive", "--out", tmp_path / "asking", "--workers", 0)
    report = build(tmp_path / "asking", tmp_path / "cache", "split.validation_fraction=0.3")
    assert report.rejected == {"missing audio": 1}, "what cannot be read stays in the list"
    split = {row.clip.id: row.split for row in read_index(index_path(tmp_path / "cache"))}
    questions = [name for name in split if name.endswith("-asked")]
    assert len(questions) > 8
    assert {split[name] for name in questions} == {"train", "validation"}
    assert all(split[name] == split[name.removesuffix("-asked")] for name in questions)
