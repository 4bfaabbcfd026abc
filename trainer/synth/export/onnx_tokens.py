"""What Matcha runtimes read besides the graph: tokens.txt and the metadata, as sherpa-onnx has them."""

import json

from xtts.shared.text.languages import find_language
from xtts.shared.text.tokenizer import BLANK, PAD, Tokenizer
from xtts.trainer.evaluation.voice_description import Voice
from xtts.trainer.synth.vocoder.onnx_vocoder import PROFILE_KEY

TOKENS_FILE = "tokens.txt"
SPACE_IN_PIECE = "\u2581"
"""Stands for a space inside a piece of byte-pair encoding: a line of tokens.txt ends its symbol at a space."""
_SENTENCE_MARKS = ("^", "$")
"""Begin and end of a sentence: sherpa-onnx 1 wants them in the table of a phoneme model, and never uses them here."""


def tokens_file(tokenizer: Tokenizer) -> str:
    """The text of tokens.txt: `SYMBOL ID` a line; pad and blank are not in it."""
    known = {symbol: i for i, symbol in enumerate(tokenizer.symbols) if symbol not in (PAD, BLANK)}
    lines = {s if s == " " else s.replace(" ", SPACE_IN_PIECE): i for s, i in known.items()}
    if tokenizer.kind == "phonemes":
        lines |= dict.fromkeys(_SENTENCE_MARKS, known[" "])
    return "".join(f"{symbol} {i}\n" for symbol, i in lines.items())


def metadata(voice: Voice, *, language: str, steps: int) -> dict[str, str]:
    """Metadata of the graph; language: the one that it speaks, or the first of several."""
    tokenizer = voice.symbol_table
    # That runtime puts pad_id around every token. Our pad is dropped inside the graph, a blank is wanted there.
    pad = tokenizer.symbols.index(BLANK if tokenizer.add_blank else PAD)
    described = {
        "model_type": "matcha-tts",
        "version": 1,
        "sample_rate": voice.mel_profile.sample_rate,
        "n_speakers": max(len(voice.speakers), 1),
        "language": find_language(language).name,
        "voice": find_language(language).voice or language,
        "has_espeak": int(tokenizer.kind == "phonemes"),
        "jieba": 0,
        "use_eos_bos": 0,
        "pad_id": pad,
        "num_ode_steps": steps,
        PROFILE_KEY: voice.profile,
        "tokenizer": tokenizer.kind,
        "add_blank": int(tokenizer.add_blank),
        "languages": json.dumps(voice.languages),
        "speakers": json.dumps(voice.speakers, ensure_ascii=False),
    }
    return {key: str(value) for key, value in described.items()}
