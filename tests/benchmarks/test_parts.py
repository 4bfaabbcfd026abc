"""What the benchmarks count, simulate and compare with, without measuring: which readings are right among it."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

from xtts.shared.text.text_normalization import expand

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
LOADS_TENSORFLOW = {"training"}
"""With settings of their own for the process."""
PROGRAMS = sorted({path.stem for path in BENCHMARKS.glob("*.py")} - LOADS_TENSORFLOW)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_still_finds_what_it_imports(program, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", [f"{program}.py", "--help"])
    with pytest.raises(SystemExit, match="0"):
        importlib.import_module(program).main()
    assert f"usage: {program}.py" in capsys.readouterr().out


def test_every_size_has_a_schedule_that_suits_a_corpus_of_any_length():
    import schedules

    for size in schedules.SIZES:
        for gpu in (schedules.NO_GPU, "a100", "h200", "rtx3060", "rtx4090"):
            for hours in schedules.HOURS:
                row = schedules.row(size, gpu, hours)
                steps = int(row["steps"].replace(",", ""))
                assert float(row["warm-up"].rstrip("%")) <= 5.0, row
                assert int(row["validations"]) >= 8, row
                assert 1_500 <= steps <= 20_000 if size == "tiny" else steps >= 20_000, row
                assert gpu == schedules.NO_GPU or float(row["clips a step"]) * 40 <= 1.01 * len(schedules.corpus(hours))


def test_a_run_has_started_when_it_has_recorded_a_step(monkeypatch, tmp_path):
    from setup import runs

    program = """
import sys, time
for line in ("", '{"split": "train"}'):
    open(sys.argv[1], "a").write(line)
    time.sleep(0.3)
"""
    metrics = tmp_path / "metrics.jsonl"
    monkeypatch.setattr(runs, "command_line", lambda *_: [sys.executable, "-c", program, str(metrics)])
    with runs.started(tmp_path) as (process, seconds):
        assert runs.lines_of(tmp_path) == [{"split": "train"}]
    assert process.returncode == 0
    assert seconds > 0.3
    monkeypatch.setattr(runs, "command_line", lambda *_: [sys.executable, "-c", "exit('no corpus')"])
    with pytest.raises(SystemExit, match=r"(?s)failed:.no corpus"), runs.started(tmp_path / "other"):
        pass


def test_another_program_speaks_each_text_in_its_own_process_and_only_that_is_timed(hibari, tmp_path):
    from other_voices import speak

    texts, folder = ["one two", "three four"], tmp_path / "sounds"
    sounds, rate, about = speak("hibari", sys.executable, texts=texts, folder=folder)
    assert rate == 8000
    assert [len(samples) for samples in sounds] == [800, 800]
    assert np.concatenate(sounds)[::800] == pytest.approx([0.07, 0.1], abs=1e-4)
    assert about == {
        "program": "hibari-tts 1.0", "real-time factor": "0.500", "parameters": "0.1M", "MB": "0.4",
    }  # fmt: skip


def test_no_held_out_sentence_is_spoken_twice(tiny_cache, monkeypatch):
    import other_voices

    rows = other_voices.read_index(next(tiny_cache.glob("index-*.parquet")))
    held_out = {row.clip.text for row in rows if row.split == "validation"}
    clips = other_voices.held_out(tiny_cache, 100)
    assert {clip.text for clip in clips} == held_out
    monkeypatch.setattr(other_voices, "read_index", lambda _: [*rows, *rows])
    assert other_voices.held_out(tiny_cache, 100) == clips
    assert other_voices.held_out(tiny_cache, 1) == clips[:1]


def test_everyday_texts_are_read_as_people_say_them():
    from readings import is_right, read_table

    rows = list(read_table(Path(__file__).parents[1] / "shared" / "text" / "everyday_texts.tsv"))
    assert len(rows) == 100
    wrong = [(text, expand(text, code)) for code, text, *rest in rows if not is_right(expand(text, code), *rest)]
    assert not wrong


def test_a_right_reading_has_the_words_and_agreement_is_counted_over_a_list(tmp_path):
    from readings import is_right, ljspeech_agreement

    assert is_right("at ten, sharp", "AT TEN|tenth", "tenth")
    assert not is_right("at tenths", "at ten", "")
    assert not is_right("the tenth", "ten|tenth", "tenth")
    assert not is_right("ten %", "ten", "%")
    lines = ["a|It is 5.|It is five.", "b|It is 6.|It is half a dozen.", "c|Plain.|Plain."]
    (tmp_path / "metadata.csv").write_text("\n".join(lines))
    assert ljspeech_agreement(tmp_path / "metadata.csv") == (1, 2)


def test_what_repeats_its_reference_is_like_whom_it_hears():
    import references

    def tone(pitch, number):
        """A buzz at this pitch, a different noise in each recording."""
        random, time = np.random.default_rng(number), np.arange(8 * references.RATE) / references.RATE
        buzz = sum(np.sin(2 * np.pi * pitch * k * time + k * k) for k in range(1, 3000 // pitch))
        return (0.02 * buzz + 0.001 * random.normal(size=len(time))).astype(np.float32)

    people = {f"{pitch} Hz": [tone(pitch, number) for number in range(14)] for pitch in (90, 170, 300)}
    rows = references.reference_table(people, lambda reference: [reference])
    nearest = {row["reference"]: row["nearest"] for row in rows}
    assert nearest["2.1 s"] == nearest["40 s"] == "100%"
    assert nearest["15 s of somebody else"] == "0%"
    assert next(row for row in rows if row["reference"] == "40 s")["doubted"] == "0%"
    similar = {row["reference"]: float(row["similarity"]) for row in rows}
    assert similar["15 s"] > similar["15 s, white noise 20 dB below"] > similar["15 s of somebody else"]
    speech = tone(170, 0)
    noise = references.with_noise(speech, 10) - speech
    assert 20 * np.log10(noise.std() / speech.std()) == pytest.approx(-10, abs=0.1)
    assert len(references.chords(4.0)) == 4 * references.RATE
