"""The doctor on caches without mels: other recordings, other mels."""

import shutil

from xtts.precompute.build.build_cache import build_cache
from xtts.precompute.workers.progress import NullProgress
from xtts.trainer.doctor.checks import audio
from xtts.trainer.doctor.subject import load_subject


def test_mels_agree_and_other_recordings_are_found(tiny_corpus, tiny_config, only, tmp_path, monkeypatch):
    corpus, cache = shutil.copytree(tiny_corpus, tmp_path / "corpus"), tmp_path / "features"
    build_cache(corpus, cache, tiny_config, workers=0, progress=NullProgress(), index_only=True)
    settings = ["shapes.buckets=2", "split.validation_fraction=0.1", "training.batch_size=3"]
    subject = load_subject((), settings, {}, cache)
    facts, findings = audio.mel_parity(subject)
    assert not findings
    assert facts[0].value["clips"] == 16
    assert 0 < facts[0].value["largest_difference"] < 1e-3
    computed = audio.log_mel
    with monkeypatch.context() as patched:
        patched.setattr(audio, "log_mel", lambda samples, profile: computed(samples, profile) + 0.002)
        assert only(audio.mel_parity(subject)).what.startswith("mels differ from stage 1's by 2.")
    shutil.rmtree(corpus / "wavs")
    assert only(audio.mel_parity(subject)).what == "16 of 16 clips cannot be read"
