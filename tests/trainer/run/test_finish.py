"""The voice that a run ends in: what `xtts-train` does after its last step, and `--finish`."""

import base64
import errno
import io
import json
import re
import shutil
from unittest import mock

import numpy as np
import pytest
import soundfile
from rich.console import Console

from xtts.shared.errors import LockstepError
from xtts.trainer.cli import main
from xtts.trainer.evaluation.listening_page import LISTEN_FILE, write_listening_page
from xtts.trainer.export.exported_voice import exported_voice
from xtts.trainer.run.finish import finish_run
from xtts.trainer.speech.synthesis_options import SynthesisOptions
from xtts.trainer.speech.synthesizer import load_synthesizer
from xtts.trainer.speech.vocoder import OUR_VOCODER, VOCODER_FILE
from xtts.trainer.speech.voice_source import open_source
from xtts.trainer.stored.stored_model import open_model

OPTIONS = SynthesisOptions(nfe=2, speed=4.0)


@pytest.fixture(scope="session")
def run_with_voice(moved_run, tmp_path_factory):
    """A copy of the finished run, with its voice."""
    run = shutil.copytree(moved_run, tmp_path_factory.mktemp("finished") / "run")
    finish_run(run, Console(quiet=True))
    return run


def test_a_run_ends_in_a_folder_that_speaks_by_itself(run_with_voice):
    voice = run_with_voice / "voice"
    assert {"model.safetensors", "model.onnx", "tokenizer.json", "README.md"} <= {file.name for file in voice.iterdir()}
    assert (voice / VOCODER_FILE).read_bytes() == OUR_VOCODER.read_bytes()
    assert f"`{VOCODER_FILE}`: from log-mel to sound; Lockstep's own (CC BY 4.0)" in (voice / "README.md").read_text()
    source = open_source(voice)
    assert exported_voice(run_with_voice, pytest.fail) == source, "of the run, too, without an export"
    ids = source.voice.tokenizer.encode("hello there").ids
    mel, _ = load_synthesizer(source, OPTIONS).speak(ids, speaker=0, noise_key=0)
    assert np.isfinite(mel).all()


@pytest.mark.long
def test_a_run_whose_cache_is_gone_ends_in_a_voice_without_figures_and_page(run_with_voice, tmp_path):
    run = shutil.copytree(run_with_voice, tmp_path / "run")
    facts = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(facts | {"cache": str(tmp_path / "gone")}))
    finish_run(run, console := Console(file=io.StringIO(), width=400))
    said = console.file.getvalue()
    assert f"no figures: {tmp_path}/gone/cache.json: no such folder" in said
    assert f"no listening page: {tmp_path}/gone/cache.json: no such folder" in said
    assert (run / "voice" / "model.onnx").is_file()
    assert "Not known: the cache was not available" in (run / "voice" / "README.md").read_text()
    assert json.loads((run / "voice" / "facts.json").read_text())["corpus"] is None
    assert not (run / "evaluation.json").exists(), "those of another checkpoint, perhaps"


def sounds_of(page):
    """The names of the sounds on a page, and their MP3s."""
    names = re.findall(r"<figcaption>(.*), [\d.]+ s</figcaption>", page)
    return names, [base64.b64decode(data) for data in re.findall(r'src="data:audio/mpeg;base64,([^"]+)"', page)]


def test_that_folder_has_a_card_with_figures_and_a_page_to_hear_it(run_with_voice):
    page = (run_with_voice / "voice" / LISTEN_FILE).read_text()
    names, sounds = sounds_of(page)
    assert set(names[::2]) == {"recorded, through the vocoder"}
    assert set(names[1::2]) == {"spoken"}
    assert len(names) == len(sounds) >= 4
    mcd = json.loads((run_with_voice / "evaluation.json").read_text())["systems"]["synthesised"]["relative_mcd"]
    assert f"<td>relative MCD</td><td>{mcd:.3f}</td>" in page
    assert f"| relative MCD | {mcd:.3f} |" in (run_with_voice / "voice" / "README.md").read_text()
    assert 'src="http' not in page


def test_the_page_has_the_recordings_themselves_where_the_corpus_is_known(run_with_voice, tiny_corpus, tmp_path):
    folder = shutil.copytree(run_with_voice / "voice", tmp_path / "voice")
    write_listening_page(open_model(run_with_voice), folder, evaluation={}, data=tiny_corpus)
    page = (folder / LISTEN_FILE).read_text()
    names, sounds = sounds_of(page)
    assert set(names[::2]) == {"recorded"}
    assert f"<title>{tiny_corpus.name}: recorded and spoken</title>" in page
    assert "<h2>Figures" not in page
    heard, rate = soundfile.read(io.BytesIO(sounds[0]))
    recordings = [soundfile.read(path) for path in sorted((tiny_corpus / "wavs").glob("*.wav"))]
    assert min(abs(len(heard) / rate - len(samples) / other) for samples, other in recordings) < 0.06


FULL_DISK = OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(("stage", "failure", "said"), [
    ("xtts.trainer.run.finish._write", KeyboardInterrupt("now"), "now"),
    ("xtts.trainer.run.finish._write", FULL_DISK, r"voice: cannot be written \(No space left on device\)"),
    ("xtts.trainer.evaluation.evaluate.evaluate", KeyboardInterrupt("now"), "now"),
    ("xtts.trainer.evaluation.listening_page.write_listening_page", FULL_DISK, "voice: cannot be written"),
    ("xtts.shared.system.atomic_files.move", KeyboardInterrupt("now"), "now"),
])
def test_the_earlier_voice_stays(run_with_voice, make_plan, tmp_path, monkeypatch, stage, failure, said):
    """Stopped, or by a full disk, while it exports and while it measures; then the same again."""
    run = shutil.copytree(run_with_voice, tmp_path / "run")
    (run / "voice" / "facts.json").write_text("{}")  # of another checkpoint
    (run / ".voice.1.partial").mkdir()  # of a finish that was killed
    (run / "voice").rename(run / ".voice.1.replaced")  # between its two renames
    plan = make_plan(run, "training.steps=12", resume=run / "checkpoints" / "step-12")

    def export(stored, folder, *_):
        assert stored.is_exported(run_with_voice / "voice")
        shutil.copytree(run_with_voice / "voice", folder, ignore=lambda *_: [LISTEN_FILE], dirs_exist_ok=True)

    monkeypatch.setattr("xtts.trainer.run.finish._write", export)
    monkeypatch.setattr("xtts.trainer.evaluation.evaluate.evaluate", mock.Mock(side_effect=LockstepError("", found="")))
    with monkeypatch.context() as patch:
        patch.setattr(stage, mock.Mock(side_effect=failure))
        with pytest.raises((KeyboardInterrupt, LockstepError), match=said):
            finish_run(run, Console(quiet=True))
    assert (run / "voice" / "model.onnx").is_file()
    assert not plan.is_finished
    finish_run(run, Console(quiet=True))
    assert plan.is_finished
    assert (run / "voice" / LISTEN_FILE).is_file()
    assert not [*run.glob(".voice*")]


@pytest.mark.long
def test_a_finished_run_is_left_as_it_is_and_one_without_its_voice_gets_it(run_with_voice, run_train, tmp_path):
    run = shutil.copytree(run_with_voice, tmp_path / "run")
    said = [run_train(run, "training.steps=12", more=["--resume"])[1] for _ in range(2)]
    assert all("is complete: step 12 of 12" in out for out in said)
    shutil.rmtree(run / "voice")
    code, out, _ = run_train(run, "training.steps=12", more=["--resume"])
    assert (code, "is complete" in out, f"in {run}/voice" in out) == (0, False, True)
    assert (run / "voice").is_dir()


def test_finish_replaces_an_earlier_voice_and_refuses_what_is_no_run(run_with_voice, call, tmp_path, monkeypatch):
    finished = []
    monkeypatch.setattr("xtts.trainer.run.finish.finish_run", lambda path, console, data=None: finished.append(path))
    assert call(main, "--finish", run_with_voice)[0] == 0
    assert finished == [run_with_voice]
    with pytest.raises(LockstepError, match="voice: an exported folder, expected a run folder"):
        finish_run(run_with_voice / "voice", Console(quiet=True))
    with pytest.raises(LockstepError, match="no checkpoint, expected a run folder"):
        finish_run(tmp_path, Console(quiet=True))
