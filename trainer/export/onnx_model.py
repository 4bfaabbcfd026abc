"""`xtts-synth export --format onnx`: a folder that onnxruntime and sherpa-onnx speak with, without TensorFlow."""

import json
from collections.abc import Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import numpy as np

from xtts.shared.languages import find_language
from xtts.shared.text.tokenizer import BLANK, END, PAD, SPECIAL, START, Tokenizer
from xtts.trainer.export.export_formats import ExportOptions
from xtts.trainer.speech.onnx_vocoder import PROFILE_KEY
from xtts.trainer.speech.reference_recordings import read_recordings
from xtts.trainer.speech.synthesis_options import SynthesisOptions
from xtts.trainer.speech.synthesizer import Synthesizer
from xtts.trainer.speech.voice_description import Voice
from xtts.trainer.speech.voice_source import GRAPH_FILE, Source, write_source
from xtts.trainer.stored.stored_model import StoredModel
from xtts.trainer.system.tensorflow_import import tensorflow_import

TOKENS_FILE = "tokens.txt"
SPACE_IN_PIECE = "\u2581"
"""Replaces a space inside a piece of byte-pair encoding: in tokens.txt a space ends the symbol."""


def save_onnx(
    stored: StoredModel, source: Source, folder: Path, *, synthesis: SynthesisOptions, options: ExportOptions
) -> str:
    """Write `model.onnx`, `tokens.txt` and what the graph offers into a folder: return a description of the graph.

    Raises:
        LockstepError: As in `make_graph`, or the source takes no recordings.
    """
    recordings = read_recordings(options.speaker_wav, source) if options.speaker_wav else []
    graph, description = make_graph(stored, source, synthesis=synthesis, options=options, recordings=recordings)
    (folder / GRAPH_FILE).write_bytes(graph)
    (folder / TOKENS_FILE).write_text(tokens_file(source.voice.tokenizer), encoding="utf-8")
    voice_from = "graph" if recordings else source.voice_from
    write_source(folder, replace(source, voice_from=voice_from, fixed_language=options.language))
    return description


def make_graph(
    stored: StoredModel, source: Source, *, synthesis: SynthesisOptions, options: ExportOptions,
    recordings: Sequence[np.ndarray],
) -> tuple[bytes, str]:
    """Make a graph of the model, with its metadata, and try it: (the graph, a description of it).

    synthesis: defaults of the optional inputs; recordings: float32[S] each at `RATE`, whose voice is fixed in it.

    Raises:
        LockstepError: The source lacks the language.
    """
    language = source.language(options.language)
    fixed = language if options.language or len(source.voice.languages) == 1 else None
    with tensorflow_import(shares_gpu=True):
        from xtts.trainer.export.onnx_graph import convert_model, load_model, store_as_float16
    graph = convert_model(load_model(stored), source, options=synthesis, language=fixed, recordings=recordings)
    if options.float16:
        store_as_float16(graph)
    import onnx

    graph.producer_name, graph.producer_version = "lockstep-tts", metadata.version("lockstep-tts")
    onnx.helper.set_model_props(graph, graph_metadata(source.voice, language=language, nfe=synthesis.nfe))
    inputs = ", ".join(entry.name for entry in graph.graph.input)
    outputs = " and ".join(entry.name for entry in graph.graph.output)
    description = f"an ONNX graph from {inputs} to {outputs}, {synthesis.nfe} evaluations"
    data: bytes = graph.SerializeToString()
    Synthesizer(source, synthesis, graph=data, location="--format onnx")  # speaks a token
    return data, description


def tokens_file(tokenizer: Tokenizer) -> str:
    """Text of tokens.txt: `SYMBOL ID` a line, start and end as `^` and `$`, without pad and blank."""
    ids = {symbol: i for i, symbol in enumerate(tokenizer.symbols) if symbol not in SPECIAL}
    lines = {"^": tokenizer.symbols.index(START), "$": tokenizer.symbols.index(END)}
    lines |= {s if s == " " else s.replace(" ", SPACE_IN_PIECE): i for s, i in ids.items()}
    return "".join(f"{symbol} {i}\n" for symbol, i in lines.items())


def graph_metadata(voice: Voice, *, language: str, nfe: int) -> dict[str, str]:
    """Metadata of the graph for sherpa-onnx; language: the one that it speaks, or the first of several."""
    tokenizer = voice.tokenizer
    # That runtime puts pad_id around every token: a blank if the model needs it, else our pad, which the graph drops.
    pad = tokenizer.symbols.index(BLANK if tokenizer.add_blank else PAD)
    fields = {
        "model_type": "matcha-tts",
        "version": 1,
        "sample_rate": voice.mel_profile.sample_rate,
        "n_speakers": max(len(voice.speakers), 1),
        "language": find_language(language).name,
        "voice": find_language(language).voice or language,
        "has_espeak": int(tokenizer.kind == "phonemes"),
        "jieba": 0,
        "use_eos_bos": 1,
        "pad_id": pad,
        "num_ode_steps": nfe,
        PROFILE_KEY: voice.profile,
        "tokenizer": tokenizer.kind,
        "add_blank": int(tokenizer.add_blank),
        "languages": json.dumps(voice.languages),
        "speakers": json.dumps(voice.speakers, ensure_ascii=False),
    }
    return {key: str(value) for key, value in fields.items()}
