"""`xtts-synth info`: a description of a checkpoint or an exported folder, read without TensorFlow."""

from pathlib import Path

import click

from xtts.shared.errors import counted_noun
from xtts.trainer.export.export_formats import ExportOptions
from xtts.trainer.export.exported_files import source_of
from xtts.trainer.export.model_card import collect_facts
from xtts.trainer.speech.vocoder import OUR_VOCODER, find_vocoder
from xtts.trainer.speech.voice_source import Source, open_source
from xtts.trainer.stored.checkpoint import ACOUSTIC
from xtts.trainer.stored.model_folder import read_facts
from xtts.trainer.stored.speech_sources import parse_sources
from xtts.trainer.stored.stored_model import open_model

_MOST_NAMED = 20


def info(checkpoint: Path) -> None:
    """Print the description, one property a line; `LockstepError` for a checkpoint that cannot be read."""
    stored = open_model(checkpoint)
    stored.check_kind(ACOUSTIC)
    source = source_of(stored) if stored.run else open_source(checkpoint)
    voice, profile = source.voice, source.voice.mel_profile
    facts = collect_facts(stored, options=ExportOptions()) if stored.run else read_facts(checkpoint)
    model, corpus = facts.get("model", {}), facts.get("corpus")
    parameters = f", {model['parameters']:,} parameters" if "parameters" in model else ""
    described = {
        "speakers": _speakers(source),
        "languages": ", ".join(source.languages),
        "tokenizer": f"{voice.tokenizer.kind}, {len(voice.tokenizer.symbols)} symbols",
        "mel profile": f"{profile.name}, {profile.mel_channels} channels",
        "sample rate": f"{profile.sample_rate:,} Hz",
        "size": f"{stored.config().model.size}{parameters}",
        "step": f"{model['steps']:,}" if "steps" in model else "not known",
        "corpus": f"{corpus['hours']:.2f} hours, {counted_noun(corpus['clips'], 'clip')}" if corpus else "not known",
        "started from": model.get("started_from", "not known"),
        "recordings": ", ".join(each.name for each in parse_sources(facts.get("sources"))),
    }
    file = find_vocoder(profile, source.folder)
    described["vocoder"] = "Griffin-Lim" if file is None else "ours" if file == OUR_VOCODER else str(file)
    described["licence"] = facts.get("license") or "not stated"
    click.echo(stored.checkpoint)
    for name, value in described.items():
        click.echo(f"  {name:<12} {value}")


def _speakers(source: Source) -> str:
    names = source.speakers
    if source.takes_recording and not names:
        return "anyone, of a recording (--speaker-wav)"
    if not names:
        return "one, without a name"
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"{len(names)}: {', '.join(names[:_MOST_NAMED])}{more}"
