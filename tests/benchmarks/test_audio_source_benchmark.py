"""The benchmark of sources runs, and its librosa gives the mels of the profile."""

import json
from pathlib import Path

import forked_program
import numpy as np
import pytest

from xtts.shared.audio.decode import decode
from xtts.shared.audio.mel import log_mel
from xtts.shared.audio.mel_profiles import MEL_PROFILES

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
MICRO = """
model: {size: tiny, text_width: 16, text_blocks: 1, text_heads: 2, prenet_layers: 1, duration_width: 16,
  decoder_width: 16, decoder_blocks: 1, decoder_levels: []}
shapes: {buckets: 1}
training: {batch_size: 3}
"""


@pytest.fixture
def benchmark(monkeypatch):
    """The script as a module."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import audio_source

    return audio_source


def test_librosa_is_asked_for_the_same_mel(benchmark, tiny_corpus, tiny_cache):
    from xtts.shared.cache.cache_spec import load_spec

    wav = tiny_corpus / "wavs" / "tone-0003.wav"
    found = benchmark.librosa_mel(str(wav), load_spec(tiny_cache))
    np.testing.assert_allclose(found, log_mel(decode(wav, rate=22_050), MEL_PROFILES["hifigan"]), atol=0.02)


@pytest.mark.long
def test_the_four_sources_are_measured(benchmark, tiny_corpus, tmp_path, monkeypatch):
    config, out = tmp_path / "micro.yaml", tmp_path / "figures.json"
    config.write_text(MICRO)
    line = ["audio_source.py", "--quick", "--data", tiny_corpus, "--batches", 4, "--work", tmp_path, "--out", out]
    monkeypatch.setattr("sys.argv", [*map(str, line), "--config", str(config)])
    monkeypatch.setattr("setup.commands.subprocess", forked_program)
    benchmark.main()
    figures = json.loads(out.read_text())
    assert [row["source"] for row in figures["table"]] == list(benchmark.SOURCES)
    assert all(value >= 0 for row in figures["table"] for value in row.values() if not isinstance(value, str))
    assert figures["times_numpy_function"] > 0
