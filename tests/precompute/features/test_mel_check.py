"""The same bytes on every processor of a kind; otherwise the mel check fails before a mel is computed."""

import os
import platform
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import soundfile
from builds import PROGRAM, tree, update

from xtts.precompute.corpus.record_recipe import RecordRecipe
from xtts.precompute.features.mel_check import check_mel, compute_mel_check
from xtts.precompute.workers.arithmetic import worker_environment
from xtts.shared.audio.mel import FEATURE_VERSION
from xtts.shared.cache.cache_spec import SPLITS, load_spec, spec_bytes
from xtts.shared.config_files import load_config
from xtts.shared.errors import LockstepError

OTHER_KERNELS = {**worker_environment(), "OPENBLAS_CORETYPE": "Prescott"}
"""As on a processor of 2004, which any x86 one can be."""
blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]["name"]
renew = partial(update, workers=1)
needs_openblas = pytest.mark.skipif(
    "openblas" not in blas or " avx2 " not in Path("/proc/cpuinfo").read_text(),
    reason=f"no choice of kernels: {blas} on {platform.machine()}",
)


@pytest.fixture
def other_machine(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Workers compute as on a machine with other kernels, until `undo`."""
    for name in OTHER_KERNELS:
        monkeypatch.setenv(name, os.environ[name])  # and back at the end
    monkeypatch.setattr("xtts.precompute.workers.worker_pool.worker_environment", lambda: OTHER_KERNELS)
    return monkeypatch


def run(kernels: str, *command: object) -> None:
    """A command in a shell that names kernels and threads."""
    shell = {**os.environ, "OPENBLAS_CORETYPE": kernels, "OPENBLAS_NUM_THREADS": "2"}
    subprocess.run([sys.executable, "-c", PROGRAM, *map(str, command)], env=shell, check=True)


def record_again(corpus: Path) -> None:
    """Another recording of one clip."""
    path = corpus / "wavs" / "tone-0007.wav"
    samples, rate = soundfile.read(path)
    soundfile.write(path, samples[::-1], rate)


def test_a_worker_with_another_mel_check_computes_nothing():
    recipe = RecordRecipe(roots={}, config=load_config("tiny"), tokenizer=None)
    check_mel(replace(recipe, mel_check=compute_mel_check(recipe)))
    with pytest.raises(LockstepError, match="expected 000000000000; build where the cache was built") as caught:
        check_mel(replace(recipe, mel_check="0" * 64))
    assert caught.value.exit_code == 1


@needs_openblas
@pytest.mark.parametrize("kernels", ["Prescott", pytest.param("SkylakeX", marks=pytest.mark.long)])
def test_the_shell_does_not_choose_the_bytes(tiny_corpus, tiny_cache, tmp_path, kernels):
    settings = ["--set", "shapes.buckets=2", "--set", "split.validation_fraction=0.1", "--workers", "2"]
    settings += ["--set", "text.tokenizer=characters"]
    run(kernels, "build", "--data", tiny_corpus, "--cache", tmp_path / "cache", *settings)
    assert tree(tmp_path / "cache") == tree(tiny_cache)


@needs_openblas
def test_a_repair_without_workers_computes_the_same_bytes(workspace):
    before, damaged = tree(workspace / "cache"), next((workspace / "cache").rglob("*.tfrecord"))
    damaged.unlink()
    options = ["--cache", workspace / "cache", "--against", workspace / "corpus"]
    run("Prescott", "verify", *options, "--repair", "--workers", 0)
    assert tree(workspace / "cache") == before


@needs_openblas
def test_a_cache_of_another_machine_is_not_continued(workspace, tiny_config, other_machine):
    before, mel_check = tree(workspace / "cache"), load_spec(workspace / "cache").mel_check
    record_again(workspace / "corpus")
    with pytest.raises(LockstepError) as caught:
        renew(workspace, tiny_config)
    assert "computes mels that are not bit-identical to the cache's: mel check " in str(caught.value)
    assert caught.value.expected == mel_check[:12]
    assert "or rebuild all of it: --fresh" in caught.value.fix
    assert tree(workspace / "cache").items() >= before.items()
    report, _ = renew(workspace, tiny_config, fresh=True)
    assert report.spec.mel_check != mel_check
    other_machine.undo()
    record_again(workspace / "corpus")
    with pytest.raises(LockstepError, match="computes mels that are not bit-identical"):
        renew(workspace, tiny_config)


@needs_openblas
def test_what_needs_no_new_mel_is_done_on_any_machine(workspace, tiny_config, other_machine):
    mel_check = load_spec(workspace / "cache").mel_check
    assert renew(workspace, tiny_config)[0].changed is False
    no_blanks = tiny_config.model_copy(update={"text": tiny_config.text.model_copy(update={"add_blank": False})})
    report, said = renew(workspace, no_blanks)
    assert report.written_shards > 0
    assert any(", 0 of them from audio" in line for line in said.lines)
    assert report.spec.mel_check == mel_check


def test_another_front_end_computes_all_mels_again(workspace, tiny_config):
    new, spec = tree(workspace / "cache"), load_spec(workspace / "cache")
    fields = spec.model_dump(mode="json")
    fields["feature_version"] = 1
    for shard in (shard for bucket in fields["buckets"] for split in SPLITS for shard in bucket[split]):
        shard["settings"] = "0" * 64
    (workspace / "cache" / "cache.json").write_bytes(spec_bytes(type(spec).model_validate(fields)))
    report, said = renew(workspace, tiny_config)
    assert f"feature extractor: version 1 -> {FEATURE_VERSION}: all mels are computed again" in said.lines
    assert report.kept_shards == 0
    assert tree(workspace / "cache") == new
