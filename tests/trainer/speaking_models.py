"""Models that speak: the moved run, and untrained ones of several speakers, languages and voices."""

from pathlib import Path

import numpy as np
import pytest
from made_once import made_once

from xtts.shared.audio.mel_profiles import mel_profile
from xtts.shared.cache.bucket_shapes import BucketShape
from xtts.shared.config_files import load_config
from xtts.shared.text.tokenizer import CHARACTERS, Tokenizer
from xtts.trainer.export.onnx_graph import convert_model
from xtts.trainer.models.acoustic.acoustic_model import AcousticModel
from xtts.trainer.models.acoustic.networks import Vocabularies
from xtts.trainer.speech.synthesis_options import SynthesisOptions
from xtts.trainer.speech.synthesizer import load_synthesizer
from xtts.trainer.speech.voice_description import Voice
from xtts.trainer.speech.voice_source import Source, open_source


def voice_of(symbols, *, speakers=(), languages=("en",), speaker_languages=(), add_blank=False, shape=(8, 64)):
    """A voice that reads these characters."""
    tokenizer = Tokenizer(
        kind="characters", add_blank=add_blank, symbols=tuple(symbols), merges=(), languages=languages
    )
    return Voice(
        profile="hifigan", mel_mean=-5.0, mel_deviation=2.0, tokenizer=tokenizer, speakers=list(speakers),
        speaker_languages=dict(speaker_languages), expand_numbers=False, trim_silence_db=None, loudness_lufs=None,
        shapes=[BucketShape(tokens=shape[0], frames=shape[1])],
    )


@pytest.fixture(scope="session")
def synthesizer(onnx_folder):
    """The graph of the moved run, with two evaluations; a test may give it other options."""
    return load_synthesizer(open_source(onnx_folder), SynthesisOptions(nfe=2))


@pytest.fixture(scope="session")
def untrained(micro):
    """`untrained("a.b=c", ...)`: (a model of three speakers and two languages whose weights all matter, its source)."""

    def make(*assignments):
        config = load_config("tiny", assignments=[*micro, *assignments]).model
        own = {"ann": "en", "bo": "en", "cy": "fa"}
        voice = voice_of(CHARACTERS, speakers=own, languages=("en", "fa"), speaker_languages=own, add_blank=True,
                         shape=(40, 400))
        rows = Vocabularies(len(CHARACTERS), speakers=3, languages=2)
        model = AcousticModel(config, rows, mel_profile("hifigan"), mean=-5.0, deviation=2.0)
        random = np.random.default_rng(1)
        for weight in model.trainable_variables:
            weight.assign_add(random.normal(0.0, 0.1, weight.shape).astype(np.float32))
        return model, Source(folder=Path("nowhere"), voice=voice, voice_from=config.voice_from)

    return make


@pytest.fixture(scope="session")
def several(untrained):
    """(a model of three speakers and two languages, its source)."""
    return untrained()


@pytest.fixture(scope="session")
def several_graph(several):
    """The bytes of its ONNX graph."""
    model, source = several
    with made_once("several-graph") as (place, empty):
        if empty:
            graph = convert_model(model, source, options=SynthesisOptions(nfe=2), language=None, recordings=[])
            (place / "model.onnx").write_bytes(graph.SerializeToString())
    return (place / "model.onnx").read_bytes()
