"""Held-out sentences joined from crops, and the figure of their speech."""

import numpy as np
import pytest
import soundfile
from cache_files import build_cache

from xtts.shared.audio.mel import log_mel
from xtts.shared.audio.mel_profiles import mel_profile
from xtts.shared.cache.cache_spec import load_spec
from xtts.shared.config import TrainingConfig
from xtts.shared.config_files import load_config
from xtts.shared.model_config import VocoderConfig
from xtts.trainer.models.vocoder.samples import VocoderSamples, held_out_sentences
from xtts.trainer.models.vocoder.vocoder import Vocoder

PROFILE = mel_profile("hifigan")


def test_a_sentence_is_its_recording_from_the_start(tone_corpus, tmp_path):
    corpus = tone_corpus(tmp_path / "corpus", 4, seconds=(4.5, 5.0))  # twelve crops and more: 10 comes after 9
    settings = ["audio.crop_frames=32", "audio.crop_pitch=0", "split.validation_fraction=0.5"]
    build_cache(corpus, tmp_path / "crops", load_config("vocoder", assignments=settings))
    sentences = held_out_sentences(tmp_path / "crops", load_spec(tmp_path / "crops"), 2)
    assert sentences
    for sentence in sentences:
        recorded, _ = soundfile.read(corpus / "wavs" / f"{sentence.name}.wav", dtype="float32")
        assert len(sentence.samples) == 256 * len(sentence.mel) >= 11 * 32 * 256
        np.testing.assert_array_equal(sentence.samples, recorded[: len(sentence.samples)])
        error = np.abs(sentence.mel - log_mel(sentence.samples, PROFILE))
        assert np.median(error) < 0.01  # but where a crop's own mel is reflected at its ends


def test_the_mel_error_is_0_for_the_recording_and_grows_with_noise(crop_cache):
    vocoder = Vocoder(VocoderConfig(width=8, blocks=1, discriminator_width=8), PROFILE)
    samples = VocoderSamples(vocoder, crop_cache, load_spec(crop_cache), TrainingConfig(sample_sentences=2))
    recorded, noise = [sentence.samples for sentence in samples.sentences], np.random.default_rng(0)
    errors = [
        samples.measure([sound + level * noise.standard_normal(len(sound)).astype("f4") for sound in recorded])[0]
        for level in (0.0, 0.01, 0.1)
    ]
    none, little, much = (error["mel_error"] for error in errors)
    assert none == pytest.approx(0.0, abs=1e-6)
    assert 0.1 < little < much
    assert not samples.finite([np.full(9, np.nan)])
