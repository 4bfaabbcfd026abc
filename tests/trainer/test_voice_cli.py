"""`xtts-voice`: what it builds, and what it passes to training."""

import os
import shutil
import signal
import threading
import time
from unittest import mock

import pytest

from xtts.shared.cache.cache_spec import load_spec
from xtts.trainer import voice_cli

FITTING = ["--set", "shapes.buckets=1", "--set", "text.tokenizer=characters", "--batch-size", "2"]


@pytest.fixture
def trained(monkeypatch):
    """The (plan, folder of the corpus) of each training, of which none is done."""
    plans = []
    monkeypatch.setattr(voice_cli, "run", lambda plan, data: plans.append((plan, data)))
    return plans


@pytest.mark.parametrize(("listed", "language"), [("", "en"), ("metadata.csv", "de")])
def test_a_corpus_is_built_and_trained_on_alike(tiny_corpus, tmp_path, call, trained, listed, language):
    """Named by its folder or by its list, of texts in English or in another language."""
    cache, more = tmp_path / "cache", ["--language", language] if listed else []
    for _ in range(2):  # again: the cache is up to date, the run is continued
        names = (tiny_corpus / listed, "--cache", cache, "--out", tmp_path / "run")
        assert call(voice_cli.main, *names, *more, *FITTING)[0] == 0
    plan, data = trained[0]
    assert load_spec(cache).features["text"]["language"] == language
    assert (plan.cache, data, plan.folder.path) == (cache, tiny_corpus, tmp_path / "run")
    assert plan.config.training.batch_size == 2
    assert plan.config.shapes.buckets == 1
    assert trained[1][0].spec.identity == plan.spec.identity


def test_a_corpus_that_cannot_be_built_is_not_trained_on(tmp_path, call, trained, capfd):
    code, _, _ = call(voice_cli.main, tmp_path / "none", "--cache", tmp_path / "cache")
    assert code == 2
    assert "error: " in capfd.readouterr().err
    assert trained == []


def test_a_corrected_corpus_is_trained_again_in_the_same_folder(tiny_corpus, tmp_path, call, trained):
    corpus, out = shutil.copytree(tiny_corpus, tmp_path / "corpus"), tmp_path / "run"
    words = (corpus, "--cache", tmp_path / "cache", "--out", out, *FITTING)
    assert call(voice_cli.main, *words)[0] == 0
    plan, _ = trained[0]
    (out / "voice").mkdir(parents=True)
    plan.folder.write_run_files(plan.config, plan.cache, plan.spec)
    call(voice_cli.main, *words).succeeded()
    assert plan.folder.run_file.is_file(), "the same corpus: the run goes on"
    listed = (corpus / "metadata.csv").read_text()
    (corpus / "metadata.csv").write_text(listed.replace("|", "|So ", 2))
    said = call(voice_cli.main, *words).succeeded()
    assert (
        f"{out}: the corpus has changed, so that a new run begins; the earlier one is in {out}/superseded/1\n" in said
    )
    assert (out / "superseded" / "1" / "run.json").is_file()
    assert (out / "voice").is_dir(), "it speaks until there is another"
    assert trained[-1][0].resume is None


def test_what_the_build_proposes_is_passed_on_to_it(tmp_path, call, trained, monkeypatch):
    monkeypatch.setattr(voice_cli, "_build", mock.Mock(return_value=2))
    assert call(voice_cli.main, tmp_path, "--layout", "piper", "--columns", "id=0,text=1", "--speakers", "one")[0] == 2
    (options,) = voice_cli._build.call_args.args
    assert options[-6:] == ["--layout", "piper", "--columns", "id=0,text=1", "--speakers", "one"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_the_build_which_answers_it(tmp_path, call, trained, monkeypatch, number):
    (build := tmp_path / "python").write_text(
        f"#!/bin/sh\ntrap 'touch {tmp_path}/ended; exit 143' TERM\n"
        f"touch {tmp_path}/ready\nwhile :; do sleep 0.02; done\n"
    )
    build.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(build))

    def send():
        while not (tmp_path / "ready").exists():
            time.sleep(0.02)
        os.kill(os.getpid(), number)

    before = signal.signal(number, signal.default_int_handler)  # not ignored, as by nohup
    try:
        threading.Thread(target=send).start()
        assert call(voice_cli.main, tmp_path)[0] == 143
    finally:
        signal.signal(number, before)
    assert (tmp_path / "ended").exists()
    assert trained == []
