"""The model card of an exported folder: the known facts about the voice."""

import json
import shlex
from collections.abc import Mapping
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from xtts.shared.cache.cache_spec import load_spec
from xtts.shared.cache.object_store import copy_of
from xtts.shared.errors import LockstepError, read_text
from xtts.trainer.evaluation.systems import figure_rows
from xtts.trainer.export.export_formats import ExportOptions
from xtts.trainer.export.onnx_model import TOKENS_FILE
from xtts.trainer.speech.vocoder import OUR_VOCODER, OUR_WEIGHTS, VOCODER_FILE
from xtts.trainer.speech.voice_source import GRAPH_FILE, VOICE_FILE
from xtts.trainer.stored.checkpoint import read_meta
from xtts.trainer.stored.model_folder import (
    CONFIG_FILE,
    FACTS_FILE,
    FEWEST_HALVED,
    WEIGHTS_FILE,
    read_facts,
    write_weights,
)
from xtts.trainer.stored.speech_sources import NOT_KNOWN, licensed, parse_sources
from xtts.trainer.stored.stored_model import StoredModel

CARD_FILE = "README.md"
LIBRARY = "lockstep-tts"

_OURS = """\
Lockstep's own (CC BY 4.0), trained on 1,136 people. One it was not trained on sounds as bright as in the
  recordings (docs/experiments.md)"""

Facts = dict[str, Any]

_CARD = """\
---
{front}---

# {name}

A text-to-speech voice: {tokens} to log-mel of profile `{profile}` ({rate:,} Hz, {channels} channels). Trained with
Lockstep, a two-stage trainer in TensorFlow; this folder was written by its version {version}.
{about}
## Use

With Lockstep installed:

    xtts-synth --ckpt {folder} "TEXT" -o out.wav
    xtts-train --init-from {folder} --config {folder}/{config} --cache features

## Model

{model}

## Corpus

{corpus}

## Recordings

{recordings}

## Figures

{figures}

## Licence

{license}

## Files

- `{weights}`: averaged weights, {type}
{graph}{vocoder}- `{config}`: configuration of the training
- `tokenizer.json`: symbols of the texts
- `{voice}`: mel statistics, speakers and shapes
- `profile.json`: the numbers of the mel profile
- `{facts}`: the figures of this page for programs
"""


def write_card_folder(stored: StoredModel, folder: Path, out: Path, *, options: ExportOptions) -> str:
    """Write weights, card and facts into a folder that becomes `out`: return a description of it.

    Raises:
        LockstepError: As in `save_weights` and `collect_facts`.
    """
    save_weights(stored, folder, options=options)
    write_card(stored, folder, out.resolve().name, options=options)
    return f"safetensors; its card is {out / CARD_FILE}"


def save_weights(stored: StoredModel, folder: Path, *, options: ExportOptions) -> None:
    """Write averaged weights; `LockstepError` if they are exported already."""
    if stored.run is None:
        raise LockstepError("--ckpt", found=f"{stored.checkpoint} is exported already", fix="copy the folder")
    dtype = np.dtype(np.float16 if options.float16 else np.float32)
    averages = stored.averages().items()
    weights = {path: values.astype(dtype) if values.size >= FEWEST_HALVED else values for path, values in averages}
    write_weights(folder, weights)


def write_origin(stored: StoredModel, folder: Path) -> None:
    """Write the facts of an export before those of its card: its checkpoint and the recordings in it."""
    sources = [asdict(each) for each in stored.sources()]
    _write_facts(folder, {"checkpoint": stored.weights_digest(), "sources": sources})


def write_card(stored: StoredModel, folder: Path, name: str, *, options: ExportOptions) -> None:
    """Write card and facts of a run's checkpoint into its exported folder, to be called `name`.

    Raises:
        LockstepError: As in `collect_facts`.
    """
    facts, profile = collect_facts(stored, options=options), stored.voice.mel_profile
    vocoder = folder / VOCODER_FILE
    ours = vocoder.is_file() and vocoder.read_bytes() == OUR_VOCODER.read_bytes()
    sources = parse_sources(read_facts(OUR_WEIGHTS).get("sources")) if ours else [NOT_KNOWN] * vocoder.is_file()
    facts["vocoder_sources"] = [asdict(each) for each in sources]
    model, corpus, evaluation = facts["model"], facts["corpus"], facts["evaluation"]
    _write_facts(folder, facts)
    front = {
        "library_name": LIBRARY,
        "pipeline_tag": "text-to-speech",
        "tags": ["text-to-speech", "tensorflow", "lockstep"],
        "language": model["languages"],
        **({"license": facts["license"]} if facts["license"] else {}),
    }
    about = read_text(options.about, expected="a file of Markdown").strip() if options.about else ""
    graph = f"- `{GRAPH_FILE}`, `{TOKENS_FILE}`: the same model for onnxruntime and sherpa-onnx\n"
    sound = f"- `{VOCODER_FILE}`: from log-mel to sound{f'; {_OURS}' if ours else ''}\n"
    unknown = "Not known: the cache was not available when this folder was written."
    card = _CARD.format(
        front=yaml.safe_dump(front, sort_keys=False, allow_unicode=True), name=name, folder=shlex.quote(name),
        tokens=model["tokenizer"], profile=profile.name, rate=profile.sample_rate, channels=profile.mel_channels,
        version=facts["version"], about=f"\n{about}\n" if options.about else "",
        model=_table({**model, "languages": ", ".join(model["languages"])}),
        corpus=_table({**corpus, "hours": round(corpus["hours"], 2)}) if corpus else unknown,
        recordings=list_recordings(facts), figures=_figures(evaluation) if evaluation else "Not computed.",
        license=facts["license"] or "Not stated.", type="float16" if options.float16 else "float32",
        weights=WEIGHTS_FILE, config=CONFIG_FILE, voice=VOICE_FILE, facts=FACTS_FILE,
        graph=graph if (folder / GRAPH_FILE).is_file() else "", vocoder=sound if vocoder.is_file() else "",
    )
    (folder / CARD_FILE).write_text(card, encoding="utf-8")


def _write_facts(folder: Path, facts: Facts) -> None:
    (folder / FACTS_FILE).write_text(json.dumps(facts, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def collect_facts(stored: StoredModel, *, options: ExportOptions) -> Facts:
    """Collect the facts of a run's checkpoint, for JSON.

    Raises:
        LockstepError: The file of figures cannot be read, or belongs to another checkpoint.
    """
    voice, stated = stored.voice, options.license
    sources = [each if each.through or not stated else licensed(each, stated) for each in stored.sources()]
    return {
        "library": LIBRARY,
        "version": metadata.version(LIBRARY),
        "license": options.license,
        "checkpoint": stored.weights_digest(),
        "model": {
            "size": stored.config().model.size,
            "parameters": sum(values.size for values in stored.averages().values()),
            "steps": read_meta(stored.checkpoint)["step"],
            "started_from": _start(stored),
            "tokenizer": voice.tokenizer.kind,
            "symbols": len(voice.tokenizer.symbols),
            "languages": voice.languages,
            "speakers": max(len(voice.speakers), 1),
        },
        "corpus": _corpus(stored),
        "sources": [asdict(each) for each in sources],
        "evaluation": _evaluation(options.evaluation, stored.checkpoint) if options.evaluation else None,
    }


def _start(stored: StoredModel) -> str:
    """Name of the model with whose weights the run began."""
    start = stored.run.init_from() if stored.run else None
    return next((each.through[-1] for each in stored.sources() if each.through), start.name) if start else "nothing"


def _corpus(stored: StoredModel) -> Facts | None:
    """Facts of the cache; None if it is gone or has changed since the training."""
    if stored.cache is None:
        return None
    try:
        spec = load_spec(copy_of(stored.cache))
    except LockstepError:
        return None
    if spec.identity != read_meta(stored.checkpoint)["cache"]:
        return None
    return {
        "clips": spec.statistics.clips,
        "held_out_clips": sum(bucket.clips("validation") for bucket in spec.buckets),
        "rejected_clips": spec.statistics.rejected,
        "hours": spec.statistics.seconds / 3600,
        "identity": spec.identity,
    }


def list_recordings(facts: Facts) -> str:
    """Make a table of the sources of model and vocoder, and count their synthetic hours."""
    rows = ["| | recordings | hours | spoken by | licence | note | through |", "|---|---|---:|---|---|---|---|"]
    totals = []
    for part, sources in (("model", facts["sources"]), ("vocoder", facts["vocoder_sources"])):
        for each in sources:
            hours = "not known" if each["hours"] is None else f"{round(each['hours'], 2):g}"
            speaker = {True: "a program", False: "a person", None: "not stated"}[each["synthetic"]]
            cells = part, each["name"], hours, speaker, each["license"] or "not stated", each["note"]
            plain = (" ".join(cell.replace("|", " ").split()) for cell in (*cells, ", then ".join(each["through"])))
            rows.append(f"| {' | '.join(plain)} |")
        synthetic = sum(each["hours"] or 0.0 for each in sources if each["synthetic"])
        totals += [f"{round(synthetic, 2):g} in the {part}"] if sources else []
    return "\n".join(rows) + f"\n\nSynthetic hours, as far as known: {', '.join(totals)}."


def _evaluation(path: Path, checkpoint: Path) -> Facts:
    """Read the mean figures of a file that `xtts-synth evaluate --json` wrote."""
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
        evaluated = Path(report["checkpoint"])
        figures = {
            system: {key: float(value) for key, value in means.items() if key not in ("sentences", "verdicts")}
            for system, means in report["systems"].items()
        }
        counts = {"split": str(report["split"]), "spoken": int(report["spoken"])}
    except OSError as error:
        raise LockstepError("--evaluation", found=f"{path} cannot be read ({error.strerror})") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise LockstepError(
            "--evaluation", found=f"{path} holds no figures", expected="a file of xtts-synth evaluate --json"
        ) from None
    if evaluated.resolve() != checkpoint.resolve():
        raise LockstepError("--evaluation", found=f"figures of {evaluated}", expected=f"those of {checkpoint}")
    return {**counts, "systems": figures}


def _figures(evaluation: Mapping[str, Any]) -> str:
    """Make a table of the mean figures of every system, a row for each figure."""
    systems = evaluation["systems"]
    rows = [f"| | {' | '.join(systems)} |", "|---|" + "---:|" * len(systems)]
    rows += [f"| {name} | {' | '.join(cells)} |" for name, cells in figure_rows(systems.values())]
    kind = "held-out" if evaluation["split"] == "validation" else "training"
    return f"Means over {evaluation['spoken']} {kind} sentences, by `xtts-synth evaluate`:\n\n" + "\n".join(rows)


def _table(values: Mapping[str, object]) -> str:
    rows = [
        f"| {key.replace('_', ' ')} | {f'{value:,}' if isinstance(value, int) else value} |"
        for key, value in values.items()
    ]
    return "\n".join(["| | |", "|---|---|", *rows])
