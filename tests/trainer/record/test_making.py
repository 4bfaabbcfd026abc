"""Training in a process of its own: what its log and its run say, and that nobody else need live for it."""

import json
import time

import pytest

from xtts.trainer.record.making import VoiceMaker


@pytest.fixture
def maker(tmp_path, monkeypatch):
    """One whose `xtts-voice` prints the lines that it finds in the file `say`, and ends with the file `end`."""
    (script := tmp_path / "python").write_text(
        "#!/bin/sh\ntrap 'echo interrupted; exit 130' TERM\n"
        f"while [ ! -e {tmp_path}/end ]; do [ -e {tmp_path}/say ] && cat {tmp_path}/say && rm {tmp_path}/say\n"
        "sleep 0.02; done\n"
    )
    script.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(script))
    (folder := tmp_path / "my-voice").mkdir()
    (folder / "run").mkdir()
    return VoiceMaker(folder, "en", ())


def say(maker, *lines):
    heard = maker.folder.parent / "say"
    heard.with_suffix(".part").write_text("".join(f"{line}\n" for line in lines))
    heard.with_suffix(".part").rename(heard)
    while heard.exists():
        time.sleep(0.01)


def until(maker, phase):
    while (state := maker.state()).phase != phase:
        time.sleep(0.01)
    return state


def end(maker):
    (maker.folder.parent / "end").touch()


def metrics(maker, *steps):
    rows = [{"split": "train", "step": step, "step_seconds": 0.5} for step in steps]
    rows.append({"split": "validation", "step": steps[-1], "loss": 1.0})
    (maker.run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows) + '{"split": "tr')


def test_phases_steps_and_the_time_left_are_read_from_log_and_run(maker):
    assert maker.state().phase == "none"
    metrics(maker, 600)  # of an earlier voice
    (maker.run / "config.yaml").write_text("training:\n  steps: 600\n")
    maker.start()
    assert maker.state().phase == "checking"
    (maker.run / "metrics.jsonl").unlink()
    say(maker, "listed 20 clips", "starting TensorFlow")
    state = until(maker, "preparing")
    assert (state.running, state.step, state.steps, state.seconds_left) == (True, 0, 600, None)
    metrics(maker, 99, 100)
    state = maker.state()
    assert (state.phase, state.step, state.steps, state.seconds_left) == ("training", 100, 600, 250.0)
    metrics(maker, 600)
    assert maker.state().phase == "finishing"
    say(maker, 'speak:       xtts-synth --ckpt run "A sentence."')
    end(maker)
    assert until(maker, "done").running is False


def test_it_outlives_its_starter_is_started_once_and_stops_when_asked(maker):
    maker.start()
    again = VoiceMaker(maker.folder, "en", ())
    again.start()
    assert again.state().running
    assert (maker.folder / "voice.log").read_text().count("\n") <= 1, "the number of one process"
    while not (maker.folder / "voice.log").read_text():
        time.sleep(0.01)
    again.stop()
    assert until(maker, "stopped").running is False
    assert again.voice is None


@pytest.mark.parametrize(("lines", "error"), [
    (["warning: x", "error: no clips; record more", "more"], "no clips; record more"),
    (["Traceback (most recent call last):", "  ...", "MemoryError"], "MemoryError"),
])
def test_an_error_is_passed_on(maker, lines, error):
    maker.start()
    say(maker, *lines)
    end(maker)
    assert until(maker, "failed").error == error
