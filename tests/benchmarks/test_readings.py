"""Everyday texts are read as people say them, and the benchmark tells right readings from wrong ones."""

from pathlib import Path

from xtts.shared.text.text_normalization import expand

TABLE = Path(__file__).parents[1] / "shared" / "text" / "everyday_texts.tsv"


def test_everyday_texts():
    from readings import is_right, read_table

    rows = list(read_table(TABLE))
    assert len(rows) == 100
    wrong = [(text, expand(text, code)) for code, text, *rest in rows if not is_right(expand(text, code), *rest)]
    assert not wrong


def test_what_is_a_right_reading():
    from readings import is_right

    assert is_right("at ten, sharp", "AT TEN|tenth", "tenth")
    assert not is_right("at tenths", "at ten", "")
    assert not is_right("the tenth", "ten|tenth", "tenth")
    assert not is_right("ten %", "ten", "%")


def test_agreement_with_the_readings_of_a_list(tmp_path):
    from readings import ljspeech_agreement

    lines = ["a|It is 5.|It is five.", "b|It is 6.|It is half a dozen.", "c|Plain.|Plain."]
    (tmp_path / "metadata.csv").write_text("\n".join(lines))
    assert ljspeech_agreement(tmp_path / "metadata.csv") == (1, 2)
