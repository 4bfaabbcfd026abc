# ruff: noqa: RUF001 - IPA letters look like others
"""`xtts-synth export --format piper`: a voice and its vocoder in one file for Piper, Home Assistant and sherpa-onnx."""

import json
import unicodedata
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from xtts.shared.errors import LockstepError, warn
from xtts.shared.languages import find_language
from xtts.shared.text.phonemes import TONAL
from xtts.shared.text.tokenizer import END, PAD, SPECIAL, START, Tokenizer
from xtts.trainer.export.export_formats import ExportOptions
from xtts.trainer.export.onnx_model import TOKENS_FILE, make_graph
from xtts.trainer.speech.long_form import LoadedVoice
from xtts.trainer.speech.onnx_file import open_session, refusals, short_message
from xtts.trainer.speech.onnx_vocoder import OnnxVocoder
from xtts.trainer.speech.reference_recordings import read_recordings
from xtts.trainer.speech.synthesis_options import SynthesisOptions
from xtts.trainer.speech.synthesizer import Synthesizer
from xtts.trainer.speech.voice_source import Source
from xtts.trainer.stored.stored_model import StoredModel

if TYPE_CHECKING:
    import onnx

_LOCATION = "--format piper"
_PAD = "_"
_GLIDES = {f"{vowel}ʲ": f"{vowel}{_PAD}" for vowel in "iɪː"}
_TAPS = {f"{stop}r": f"{stop}ɾ" for stop in "bdɡkpt"}
"""Pairs that Piper's espeak-ng and that of the extra `phonemes` write differently; the taps are German."""


def save_piper(
    stored: StoredModel, source: Source, folder: Path, name: str, *, vocoder: Path | None, synthesis: SynthesisOptions,
    options: ExportOptions,
) -> str:
    """Write `NAME.onnx`, `NAME.onnx.json` and `tokens.txt` into a folder: return a description of the voice.

    Raises:
        LockstepError: The voice reads no phonemes, or speaks several languages or one with tones, the vocoder is
            missing or gives no samples, or as in `read_recordings` and `make_graph`.
    """
    language = _language(source, options.language)
    if vocoder is None:
        found = f"no vocoder for mel profile {source.voice.mel_profile.name}"
        fix = "add --vocoder FILE.onnx, which becomes part of the voice"
        raise LockstepError(_LOCATION, found=found, fix=fix)
    sound = OnnxVocoder(vocoder, source.voice.mel_profile, warn)
    recordings = read_recordings(options.speaker_wav, source)
    model, _ = make_graph(stored, source, synthesis=synthesis, options=options, recordings=recordings)
    import onnx

    from xtts.trainer.export.onnx_graph import store_as_float16
    from xtts.trainer.export.piper_graph import join_graphs, token_graph

    graphs = onnx.load_from_string(model), read_vocoder(vocoder)
    if options.float16:
        store_as_float16(graphs[1])
    ids, rules = piper_phonemes(source.voice.tokenizer, language)
    speakers = piper_speakers(source, language)
    gains = dict[int, float]()
    synthesizer = Synthesizer(source, synthesis, graph=model, location=_LOCATION)
    for row in speakers.values() or [0]:
        speaker = LoadedVoice(synthesizer, sound, speaker=row, language=language)
        speaker.measure()
        gains[row] = speaker.gain or 1.0
    voice = join_graphs(
        token_graph(source.voice.tokenizer, rules), *graphs, channels_first=sound.mel_input.channels_first, gains=gains
    )
    voice.producer_name, voice.producer_version = "lockstep-tts", metadata.version("lockstep-tts")
    onnx.helper.set_model_props(voice, _sherpa_metadata(source, language, [*speakers]))
    config = _piper_config(source, ids, [*speakers], language=language, temperature=synthesis.temperature)
    tokens = "".join(f"{phoneme} {i}\n" for phoneme, i in ids.items())
    (folder / f"{name}.onnx").write_bytes(_try_voice(voice, ids))
    (folder / f"{name}.onnx.json").write_text(json.dumps(config, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    (folder / TOKENS_FILE).write_text(tokens, encoding="utf-8")
    return (
        f"a Piper voice, {name}.onnx and {name}.onnx.json: {find_language(language).name}, {synthesis.nfe} evaluations"
    )


def _language(source: Source, chosen: str | None) -> str:
    """Return the one language of the voice; `LockstepError` if Piper's phonemes cannot write it."""
    if (kind := source.voice.tokenizer.kind) != "phonemes":
        raise LockstepError(_LOCATION, found=f"a voice that reads {kind}", expected="one of text.tokenizer=phonemes")
    if chosen is None and len(source.languages) > 1:
        expected = f"{' or '.join(source.languages)}: a Piper voice speaks one language"
        raise LockstepError("--language", found="missing", expected=expected)
    language = find_language(source.language(chosen))
    if language.voice in TONAL:
        found = f"{language.name}, whose tones are missing from Piper's phonemes"
        raise LockstepError(_LOCATION, found=found, expected="a language without tones", fix="--format onnx")
    return language.code


def read_vocoder(path: Path) -> "onnx.ModelProto":
    """Read a vocoder from mel to samples, in the opset of our graphs; `LockstepError` for others."""
    import onnx

    from xtts.trainer.export.onnx_graph import OPSET

    model = onnx.load(path)
    types = [entry.type.tensor_type.elem_type for entry in (*model.graph.input, *model.graph.output)]
    if types != [onnx.TensorProto.FLOAT] * 2:
        found = "unsuitable inputs or outputs, such as int16"
        raise LockstepError(str(path), found=found, expected="a vocoder from a float32 mel to float32 samples")
    opset = next(entry.version for entry in model.opset_import if not entry.domain)
    try:
        return model if opset == OPSET else onnx.version_converter.convert_version(model, OPSET)
    except (RuntimeError, ValueError) as error:
        found = f"cannot be converted to opset {OPSET} ({short_message(error)})"
        raise LockstepError(str(path), found=found, expected="a vocoder of that opset") from None


def piper_phonemes(
    tokenizer: Tokenizer, language: str
) -> tuple[dict[str, int], dict[tuple[int, int], tuple[int, int]]]:
    """Return (the ids of Piper's phonemes, pairs of ids and what to speak in their place).

    Piper takes letters and their marks apart (NFD), such as ç. Letters and marks without a token have ids from
    `tokenizer.size` on; Piper drops phonemes without an id. Outside English `-` is a sign of espeak-ng's.
    """
    table = {symbol: i for i, symbol in enumerate(tokenizer.symbols)}
    ids = {_PAD: table[PAD], "^": table[START], "$": table[END], "g": table["ɡ"]}  # g: as typed in [[ ]]
    ids |= {symbol: i for symbol, i in table.items() if symbol not in SPECIAL and (symbol != "-" or language == "en")}
    apart = {symbol: unicodedata.normalize("NFD", symbol) for symbol in ids}
    pairs = {pair: f"{symbol}{_PAD}" for symbol, pair in apart.items() if len(pair) == 2}
    lacking = sorted({*"".join(pairs)} - {*ids})
    ids |= {phoneme: i for i, phoneme in enumerate(lacking, tokenizer.size)}
    pairs |= _GLIDES | (_TAPS if language == "de" else {})
    return ids, {(ids[a[0]], ids[a[1]]): (ids[b[0]], ids[b[1]]) for a, b in pairs.items()}


def piper_speakers(source: Source, language: str) -> dict[str, int]:
    """Rows of the speakers who were recorded in a language, by name; of all if none was, or if it is not known."""
    rows = {speaker: row for row, speaker in enumerate(source.speakers)}
    spoken = source.voice.speaker_languages
    return {speaker: row for speaker, row in rows.items() if spoken.get(speaker) == language} or rows


def _piper_config(
    source: Source, ids: dict[str, int], speakers: list[str], *, language: str, temperature: float
) -> dict[str, object]:
    """Content of `NAME.onnx.json`; the voice has the name of its file."""
    return {
        "audio": {"sample_rate": source.voice.mel_profile.sample_rate},
        "hop_length": source.voice.mel_profile.hop_samples,
        "language": {"code": language},
        "espeak": {"voice": find_language(language).voice},
        "phoneme_type": "espeak",
        "inference": {"noise_scale": temperature, "length_scale": 1.0, "noise_w": 0.0},
        "num_symbols": max(ids.values()) + 1,
        "num_speakers": max(len(speakers), 1),
        "speaker_id_map": {speaker: row for row, speaker in enumerate(speakers) if len(speakers) > 1},
        "phoneme_id_map": {phoneme: [i] for phoneme, i in ids.items()},
    }


def _sherpa_metadata(source: Source, language: str, speakers: list[str]) -> dict[str, str]:
    """Metadata by which sherpa-onnx recognises a Piper voice."""
    return {
        "model_type": "vits",
        "comment": "piper",
        "language": find_language(language).name,
        "voice": find_language(language).voice,
        "has_espeak": "1",
        "n_speakers": str(max(len(speakers), 1)),
        "sample_rate": str(source.voice.mel_profile.sample_rate),
    }


def _try_voice(voice: "onnx.ModelProto", ids: dict[str, int]) -> bytes:
    """Serialize a voice and have it speak a vowel."""
    data: bytes = voice.SerializeToString()
    given = {
        "input": np.array([[ids[phoneme] for phoneme in "^_a_$"]], np.int64), "input_lengths": np.array([5], np.int64),
        "scales": np.array([0.5, 1.0, 0.0], np.float32), "sid": np.zeros([1], np.int64),
    }
    session = open_session(data, _LOCATION)
    try:
        session.run(None, {entry.name: given[entry.name] for entry in session.get_inputs()})
    except refusals() as error:
        raise LockstepError(_LOCATION, found=f"a graph that does not run ({short_message(error)})") from None
    return data
